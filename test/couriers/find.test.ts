import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { catchRejection } from '../support/make-client.ts';
import { COURIERS, courierService, listOf, makeCourier, readCodes } from './courier-service.ts';

describe('find, couriers that fit', () => {
  test.each([
    ['us-post', ['us-post']],
    ['US-Post', ['us-post']],
    ['usps', ['us-post']],
    ['la poste', ['fr-post']],
    ['correios são paulo', ['br-post']],
    ['CORREIOS SAO PAULO', ['br-post']],
    ['  paulo ', ['br-post']],
    ['aland', ['posten']],
    ['ala', ['posten']],
    ['ελτας', ['gr-elta']],
    ['ελτασ', ['gr-elta']],
    ['日本', ['jp-post']],
    ['郵便', ['jp-post']],
    ['почта', ['ru-post']],
    ['डाक', ['in-post']],
    ['br', ['br-post']],
    ['express', ['x-post']],
    ['null', []],
    ['old', []],
    ['no such courier', []],
  ])('%j → %j', async (text, codes) => {
    expect(readCodes(await courierService().client.couriers.find(text))).toEqual(codes);
  });

  test.each(['', ' ', '\t\n'])(
    '%j → all couriers that are not deprecated, in the order of the service',
    async (text) => {
      const current = COURIERS.filter(({ isDeprecated }) => isDeprecated !== true);
      expect(await courierService().client.couriers.find(text)).toEqual(current);
    },
  );

  test('deprecated: true → deprecated couriers, too', async () => {
    const { client } = courierService();
    expect(readCodes(await client.couriers.find('old', { deprecated: true }))).toEqual(['old-post']);
    expect(await client.couriers.find('', { deprecated: true })).toEqual(COURIERS);
  });
});

describe('find, the order', () => {
  const couriers = [
    makeCourier('country', { courierName: 'Kurier', countryCode: 'DHL' }),
    makeCourier('name-contains', { courierName: 'Mydhl' }),
    makeCourier('my-dhl-code', { courierName: 'Another' }),
    makeCourier('word', { courierName: 'Express-DHLine' }),
    makeCourier('name', { courierName: 'DHL ' }),
    makeCourier('dhl', { courierName: 'Something else' }),
  ];

  test('a text that fits in each way → code, name, word of the name, part of code or name, country', async () => {
    const { client } = courierService(listOf(couriers));
    const codes = ['dhl', 'name', 'word', 'name-contains', 'my-dhl-code', 'country'];
    expect(readCodes(await client.couriers.find('dhl'))).toEqual(codes);
  });

  test('a text that stands inside of a word before it begins one → the word counts', async () => {
    const list = [
      makeCourier('a', { courierName: 'Supost' }),
      makeCourier('b', { courierName: 'Supost Post' }),
    ];
    expect(readCodes(await courierService(listOf(list)).client.couriers.find('post'))).toEqual(['b', 'a']);
  });

  test('a text after a letter beyond the first 65,536 characters → part of a word', async () => {
    const list = [
      makeCourier('a', { courierName: '𠮷field' }),
      makeCourier('b', { courierName: 'Any field' }),
    ];
    expect(readCodes(await courierService(listOf(list)).client.couriers.find('field'))).toEqual(['b', 'a']);
  });

  test('fields of unexpected types → couriers that fit by their other fields', async () => {
    const odd = { courierCode: 7, courierName: ['Oddpost'], countryCode: { code: 'US' }, isDeprecated: 'no' };
    const { client } = courierService(listOf([odd, makeCourier('us-post')]));
    expect(readCodes(await client.couriers.find('post'))).toEqual(['us-post']);
    expect(await client.couriers.find('')).toHaveLength(2);
  });
});

function toPlainName(name: string | null | undefined): string {
  return (name ?? '').toUpperCase().trim().replace(/\s+/g, ' ');
}

test('any list of 1,500 couriers → each is found first by its code, and by its name among equal names', async () => {
  const LETTERS = ['a', 'É', 'ß', 'ö', 'Ж', 'Σ', '日', 'ก', 'ि', ' ', '-', '7'];
  const name = fc.string({ unit: fc.constantFrom(...LETTERS), minLength: 1, maxLength: 12 });
  const entry = fc.record({
    courierName: name,
    countryCode: fc.constantFrom(null, 'DE', 'US', 'ALA'),
    isDeprecated: fc.boolean(),
  });
  const entries = fc.array(entry, { minLength: 1, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(entries, fc.nat({ max: 1499 }), fc.boolean(), async (some, index, isUpper) => {
      const couriers = Array.from({ length: 1_500 }, (_, position) =>
        makeCourier(`courier-${position}`, some[position % some.length]),
      );
      const { client } = courierService(listOf(couriers));
      const chosen = couriers[index] ?? makeCourier('none');
      const change = (text: string) => (isUpper ? text.toUpperCase() : text.toLowerCase());
      const all = { deprecated: true };
      const [byCode] = await client.couriers.find(change(chosen.courierCode), all);
      expect(byCode).toEqual(chosen);
      const byName = await client.couriers.find(change(chosen.courierName ?? ''), all);
      const place = readCodes(byName).indexOf(chosen.courierCode);
      expect(place).toBeGreaterThanOrEqual(0);
      const before = byName.slice(0, place).map(({ courierName }) => toPlainName(courierName));
      const name = toPlainName(chosen.courierName);
      // A name of spaces only is an empty text, which finds all.
      expect(before.filter((other) => name !== '' && other !== name)).toEqual([]);
      const current = await client.couriers.find(change(chosen.courierName ?? ''));
      expect(readCodes(current)).toEqual(
        readCodes(byName.filter(({ isDeprecated }) => isDeprecated !== true)),
      );
    }),
    { numRuns: 5 },
  );
});

describe('find, invalid arguments', () => {
  test.each([
    [7, {}, 'Expected `text` to be a string, got 7'],
    [undefined, {}, 'Expected `text` to be a string, got undefined'],
    ['a', { deprecated: 'no' }, "Expected `deprecated` to be true or false, got 'no'"],
    ['a', { signal: 'stop' }, 'Expected `signal` to be an AbortSignal'],
    ['a', { timeoutMs: 5 }, 'Unknown option `timeoutMs`; known options: deprecated, signal'],
  ])('%j, %j → ConfigurationError', async (text, options, message) => {
    const { client, requests } = courierService();
    // @ts-expect-error -- these values do not compile
    const error = await catchRejection(client.couriers.find(text, options));
    expect(error).toMatchObject({ name: 'ConfigurationError', message: expect.stringContaining(message) });
    expect(requests).toEqual([]);
  });
});

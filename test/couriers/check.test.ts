import { describe, expect, test } from 'vitest';
import type { CourierCheck, TrackerInput } from '../../src/index.ts';
import { deferred } from '../support/deferred.ts';
import { catchRejection } from '../support/make-client.ts';
import { courierService, listOf, makeCourier } from './courier-service.ts';

const LIST = listOf([
  makeCourier('us-post'),
  makeCourier('nl-post', { requiredFields: ['destinationPostCode', 'destinationCountryCode'] }),
  makeCourier('acc-post', { requiredFields: ['courierAccount'] }),
  makeCourier('new-post', { requiredFields: ['senderPostCode'] }),
  makeCourier('old-post', { isDeprecated: true, requiredFields: ['destinationPostCode'] }),
  makeCourier('none-post', { requiredFields: [] }),
  { courierCode: 'old-list', is_destination_postcode_required: true },
  { courierCode: 'old-list-2', is_destination_postcode_required: false },
  { courierCode: 'both', requiredFields: ['destinationPostCode'], is_destination_postcode_required: true },
  { courierCode: 'odd', requiredFields: 'destinationPostCode', isDeprecated: 'no' },
  { courierCode: 'odder', requiredFields: [7, { name: 'destinationPostCode' }] },
]);
const trackingNumber = 'LA680658838NL';
/** The problems of an input as texts such as `nl-post missing destinationPostCode`. */
async function check(fields: object): Promise<string[]> {
  const { client } = courierService(LIST);
  const problems = await client.couriers.check({ trackingNumber, ...fields });
  return problems.map(({ field, courierCode, problem }) => `${courierCode} ${problem} ${field}`);
}

const NL = { courierCode: 'nl-post', destinationPostCode: '1011 AB', destinationCountryCode: 'NL' };

describe('check', () => {
  test.each<[input: object, problems: string[]]>([
    [{ courierCode: 'us-post' }, []],
    [{ courierCode: 'none-post' }, []],
    [NL, []],
    [{ ...NL, destinationPostCode: undefined }, ['nl-post missing destinationPostCode']],
    [{ ...NL, destinationPostCode: null }, ['nl-post missing destinationPostCode']],
    [{ ...NL, destinationCountryCode: ' ' }, ['nl-post missing destinationCountryCode']],
    [
      { courierCode: 'nl-post' },
      ['nl-post missing destinationPostCode', 'nl-post missing destinationCountryCode'],
    ],
    [{ courierCode: 'acc-post' }, ['acc-post not_sendable courierAccount']],
    [{ courierCode: 'acc-post', courierAccount: '7' }, ['acc-post not_sendable courierAccount']],
    [{ courierCode: 'new-post' }, ['new-post missing senderPostCode']],
    [{ courierCode: 'new-post', senderPostCode: '1011 AB' }, []],
    [{ courierCode: 'old-post' }, ['old-post deprecated courierCode']],
    [{ courierCode: 'typo-post' }, ['typo-post unknown courierCode']],
    [{ courierCode: 'old-list' }, ['old-list missing destinationPostCode']],
    [{ courierCode: 'old-list', destinationPostCode: '1011 AB' }, []],
    [{ courierCode: 'old-list-2' }, []],
    [{ courierCode: 'both' }, ['both missing destinationPostCode']],
    [{ courierCode: 'odd' }, ['odd missing destinationPostCode']],
    [{ courierCode: 'odder' }, []],
    [{ courierCode: ' US-Post ' }, []],
    [
      { courierCode: ['us-post', 'typo-post', 'old-list'] },
      ['typo-post unknown courierCode', 'old-list missing destinationPostCode'],
    ],
  ])('%j → %j', async (fields, problems) => {
    expect(await check(fields)).toEqual(problems);
  });

  test.each([
    {},
    { courierCode: undefined },
    { courierCode: null },
    { courierCode: '' },
    { courierCode: [] },
    { courierCode: [' ', null, 7] },
    { courierCode: 7 },
  ])('%j → no problem, and no request', async (fields) => {
    const { client, requests } = courierService(LIST);
    // @ts-expect-error -- some of these values do not compile
    expect(await client.couriers.check({ trackingNumber, ...fields })).toEqual([]);
    expect(requests).toEqual([]);
  });

  test.each([null, undefined, 'nl-post', ['nl-post']])(
    '%j, which is no request → no problem',
    async (input) => {
      // @ts-expect-error -- these values do not compile
      expect(await courierService(LIST).client.couriers.check(input)).toEqual([]);
    },
  );

  test('each problem → a sentence that names the courier', async () => {
    const { client } = courierService(LIST);
    const courierCode = ['acc-post', 'old-post', 'typo-post'];
    const problems = [
      ...(await client.couriers.check({ trackingNumber, courierCode })),
      ...(await client.couriers.check({ trackingNumber, courierCode: 'old-list' })),
    ];
    expect(problems.map(({ message }) => message)).toEqual([
      "The courier 'acc-post' needs the number of an account, for which a creation request has no field",
      "The courier code 'old-post' is deprecated, and the service ignores it",
      "The service has no courier 'typo-post', and ignores the code",
      "The courier 'old-list' needs `destinationPostCode`, and may find nothing without it",
    ]);
  });

  test('ten thousand finds and checks → one request', async () => {
    const { client, requests } = courierService(LIST);
    const calls = Array.from({ length: 5_000 }, () => [
      client.couriers.check({ trackingNumber, courierCode: 'nl-post' }),
      client.couriers.find('nl-post'),
    ]);
    await Promise.all(calls.flat());
    expect(requests).toHaveLength(1);
  });

  test('a list that cannot be read → its error, with the line of the call', async () => {
    const { client } = courierService({ status: 404 });
    const callFromHere = () => client.couriers.check({ trackingNumber, courierCode: 'nl-post' });
    const stack = expect.stringContaining('callFromHere');
    expect(await catchRejection(callFromHere())).toMatchObject({ name: 'NotFoundError', stack });
  });

  test('create of an input with problems → sent all the same, without the list', async () => {
    const { client, requests } = courierService({ body: { data: { tracker: { trackerId: 't' } } } });
    await client.trackers.create({ trackingNumber, courierCode: 'typo-post' });
    expect(requests.map(({ target }) => target)).toEqual(['/trackers']);
  });
});

describe('checkMany', () => {
  const INPUTS: TrackerInput[] = [
    { trackingNumber },
    { trackingNumber, courierCode: 'typo-post' },
    { trackingNumber, courierCode: 'us-post' },
  ];
  const collect = async (checks: AsyncIterable<CourierCheck>) => {
    const all: CourierCheck[] = [];
    for await (const each of checks) all.push(each);
    return all;
  };
  async function* asAsync<T>(items: readonly T[]) {
    yield* items;
  }

  test.each([
    ['a list', INPUTS],
    ['an async iterable', asAsync(INPUTS)],
  ])('%s → each input with its index and problems, in order, after one request', async (_, inputs) => {
    const { client, requests } = courierService(LIST);
    const checks = await collect(client.couriers.checkMany(inputs));
    expect(checks.map(({ index, input }) => [index, input])).toEqual([...INPUTS.entries()]);
    expect(checks.map(({ problems }) => problems.map(({ problem }) => problem))).toEqual([
      [],
      ['unknown'],
      [],
    ]);
    expect(requests).toHaveLength(1);
  });

  test('an input that is not an object → no problem, and the others are checked', async () => {
    const { client } = courierService(LIST);
    // @ts-expect-error -- null does not compile
    const checks = await collect(client.couriers.checkMany([null, ...INPUTS]));
    expect(checks.map(({ problems }) => problems.length)).toEqual([0, 0, 1, 0]);
  });

  test('an input → read when it is reached', async () => {
    let count = 0;
    function* inputs() {
      for (;;) {
        count += 1;
        yield { trackingNumber, courierCode: 'us-post' };
      }
    }
    const checks = courierService(LIST).client.couriers.checkMany(inputs());
    for (let read = 1; read <= 100; read += 1) {
      await checks.next();
      expect(count).toBe(read);
    }
    await checks.return();
  });

  test('a source that throws → its error', async () => {
    const reason = new RangeError('broken');
    function* inputs() {
      yield { trackingNumber };
      throw reason;
    }
    const checks = courierService(LIST).client.couriers.checkMany(inputs());
    await checks.next();
    expect(await catchRejection(checks.next())).toBe(reason);
  });

  test('an abort while the list is read → its reason, and the source is closed', async () => {
    const response = deferred<Response>();
    const controller = new AbortController();
    let isClosed = false;
    function* inputs() {
      try {
        yield { trackingNumber, courierCode: 'us-post' };
      } finally {
        isClosed = true;
      }
    }
    const { client } = courierService(() => response.promise);
    const next = client.couriers.checkMany(inputs(), { signal: controller.signal }).next();
    const reason = new RangeError('enough');
    controller.abort(reason);
    expect(await catchRejection(next)).toBe(reason);
    expect(isClosed).toBe(true);
  });

  test('a list that cannot be read → its error, with the line of the call', async () => {
    const { client } = courierService({ status: 404 });
    const callFromHere = () => client.couriers.checkMany([{ trackingNumber, courierCode: 'us-post' }]);
    const stack = expect.stringContaining('callFromHere');
    expect(await catchRejection(callFromHere().next())).toMatchObject({ name: 'NotFoundError', stack });
  });

  test.each([
    ['LA680658838NL', {}, 'Expected `inputs` to be an iterable'],
    [[], { concurrency: 3 }, 'Unknown option `concurrency`; known options: signal'],
  ])('%j, %j → ConfigurationError at once', (inputs, options, message) => {
    const { client } = courierService(LIST);
    // @ts-expect-error -- these values do not compile
    expect(() => client.couriers.checkMany(inputs, options)).toThrow(message);
  });
});

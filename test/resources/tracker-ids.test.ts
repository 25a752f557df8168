import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestValidationError } from '../../src/errors.ts';
import type { TrackerRequestOptions, TrackingClient } from '../../src/index.ts';
import { anyText } from '../support/any-text.ts';
import { catchRejection, makeClient } from '../support/make-client.ts';

/** Every method that takes an id, by what follows the id in its path. */
const METHODS = [
  ['', ({ trackers }, id, options) => trackers.get(id, options)],
  ['', ({ trackers }, id, options) => trackers.update(id, { isSubscribed: false }, options)],
  ['/results', ({ trackers }, id, options) => trackers.results(id, options)],
  ['/webhook-events/resend', ({ trackers }, id, options) => trackers.resendWebhookEvents(id, options)],
  ['/webhook-history/download', ({ trackers }, id, options) => trackers.webhookHistory(id, options)],
] as const satisfies [
  string,
  (client: TrackingClient, id: string, options?: TrackerRequestOptions) => unknown,
][];

/** The errors of every such method, and what was sent. */
async function callAll(id: string, options?: TrackerRequestOptions) {
  const { client, requests } = makeClient({ status: 404 });
  const errors = await Promise.all(METHODS.map(([, call]) => catchRejection(call(client, id, options))));
  return { errors, targets: requests.map(({ target }) => target) };
}

/** A dot that is percent-encoded this many times. */
const encodeDot = (times: number) => `%${'25'.repeat(times - 1)}2e`;

describe('ids in paths', () => {
  test.each([
    ...['a/b', 'order 42', 'a?b#c', '%41', 'search/x', '...', 'a..b', '..a', '%zz', '😀'],
    // No server decodes that often.
    encodeDot(9),
  ])('%j → one segment, for every method that takes an id', async (id) => {
    const { targets } = await callAll(id);
    expect(targets.toSorted()).toEqual(
      METHODS.map(([rest]) => `/trackers/${encodeURIComponent(id)}${rest}`).toSorted(),
    );
  });

  test.each([
    ...['', ' ', '\t\n'].map((id) => [id, 'a non-empty id, got']),
    ...['.', '..', ' .. ', '%20..', '%2e', '%2E%2e', '%2e.'].map((id) => [
      id,
      'an id without a path segment `.` or `..`, got',
    ]),
    ...['../couriers', 'a/../../couriers', 'a%2F..%2fb', 'a\\..\\b', 'a/%2e', 'a/ .. /b', './a', 'a/.'].map(
      (id) => [id, 'an id without a path segment `.` or `..`, got'],
    ),
    ...['%25%32%65', '%252e.', encodeDot(8)].map((id) => [
      id,
      'an id without a path segment `.` or `..`, got',
    ]),
    ...['\ud800', 'a\udc00b'].map((id) => [id, 'well-formed Unicode, got']),
  ])(
    '%j → RequestValidationError for every method that takes an id, nothing is sent',
    async (id = '', rule) => {
      const { errors, targets } = await callAll(id);
      const message = expect.stringContaining(`Expected \`trackerId\` to be ${rule}`);
      expect(errors).toMatchObject(METHODS.map(() => ({ name: 'RequestValidationError', message })));
      expect(targets).toEqual([]);
    },
  );

  test('any string as an id → refused, or exactly one segment after /trackers/', async () => {
    const { client, requests } = makeClient({ status: 404 });
    await fc.assert(
      fc.asyncProperty(anyText({ maxLength: 12 }), async (id) => {
        const before = requests.length;
        const error = await catchRejection(client.trackers.get(id));
        if (error instanceof RequestValidationError) {
          expect(requests.length).toBe(before);
          return;
        }
        const target = requests.at(-1)?.target ?? '';
        expect(target).toMatch(/^\/trackers\/[^/?#]+$/);
        expect(decodeURIComponent(target.slice('/trackers/'.length))).toBe(id);
      }),
    );
  });
});

describe('tracking numbers in paths', () => {
  test.each(['LA680658838NL', 'AB/12/3', 'A..B/C', '12345'])('%s → one segment', async (number) => {
    const { client, requests } = makeClient({ body: { data: { trackings: [] } } });
    await client.trackers.resultsByTrackingNumber(number);
    expect(requests[0]?.target).toBe(`/trackers/search/${encodeURIComponent(number)}/results`);
  });

  test.each([
    ...['../..', 'AB/../CD', 'ABCD/.', './ABCD'].map((number) => [
      number,
      'without a path segment `.` or `..`, got',
    ]),
    ...['AB12', 'AB%2E%2E', 'AB 123', 'A'.repeat(51)].map((number) => [number, 'got']),
  ])('%j → RequestValidationError, nothing is sent', async (number = '', what) => {
    const { client, requests } = makeClient();
    const message = expect.stringMatching(`^Expected \`trackingNumber\` to .*${what}`);
    const error = await catchRejection(client.trackers.resultsByTrackingNumber(number));
    expect(error).toMatchObject({ name: 'RequestValidationError', message });
    expect(requests).toHaveLength(0);
  });
});

describe('searchBy', () => {
  test.each(['trackerId', 'clientTrackerId'] as const)('%s → sent as the query', async (searchBy) => {
    const { targets } = await callAll('t', { searchBy });
    const expected = METHODS.map(([rest]) => `/trackers/t${rest}?searchBy=${searchBy}`);
    expect(targets.toSorted()).toEqual(expected.toSorted());
  });

  test('an unknown value of searchBy → RequestValidationError with the rule', async () => {
    const options: object = { searchBy: 'clientId' };
    const message = `Expected \`searchBy\` to be "trackerId" or "clientTrackerId", got 'clientId'`;
    expect((await callAll('t', options)).errors).toMatchObject(METHODS.map(() => ({ message })));
  });
});

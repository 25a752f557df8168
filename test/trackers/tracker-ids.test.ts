import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestValidationError } from '../../src/errors.ts';
import type { TrackerRequestOptions, TrackingClient } from '../../src/index.ts';
import { anyText } from '../support/any-text.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';

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
  const errors = await Promise.all(METHODS.map(([, call]) => rejectionOf(call(client, id, options))));
  return { errors, targets: requests.map(({ target }) => target) };
}

describe('ids in paths', () => {
  test.each(['a/b', 'order 42', 'a?b#c', '%41', 'search/x', '../couriers', '😀'])(
    '%j → one segment, for every method that takes an id',
    async (id) => {
      const { targets } = await callAll(id);
      expect(targets.toSorted()).toEqual(
        METHODS.map(([rest]) => `/trackers/${encodeURIComponent(id)}${rest}`).toSorted(),
      );
    },
  );

  test.each(['', ' ', '.', '..', '%2e%2e', '\ud800'])(
    '%j → RequestValidationError for every method that takes an id, nothing is sent',
    async (id) => {
      const { errors, targets } = await callAll(id);
      const message = expect.stringMatching(/^Expected `trackerId` to be /);
      expect(errors).toMatchObject(METHODS.map(() => ({ name: 'RequestValidationError', message })));
      expect(targets).toEqual([]);
    },
  );

  test('any string as an id → refused, or exactly one segment after /trackers/', async () => {
    const { client, requests } = makeClient({ status: 404 });
    await fc.assert(
      fc.asyncProperty(anyText({ maxLength: 12 }), async (id) => {
        const before = requests.length;
        const error = await rejectionOf(client.trackers.get(id));
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

  test('a tracking number with slashes → one segment', async () => {
    const { client, requests } = makeClient({ body: { data: { trackings: [] } } });
    await client.trackers.resultsByTrackingNumber('AB/12/3');
    expect(requests[0]?.target).toBe('/trackers/search/AB%2F12%2F3/results');
  });

  test.each(['AB/../..', 'AB 123'])('tracking number %j → refused, nothing is sent', async (number) => {
    const { client, requests } = makeClient();
    const message = expect.stringContaining('`trackingNumber`');
    const error = await rejectionOf(client.trackers.resultsByTrackingNumber(number));
    expect(error).toMatchObject({ name: 'RequestValidationError', message });
    expect(requests).toHaveLength(0);
  });
});

describe('searchBy', () => {
  test.each(['trackerId', 'clientTrackerId'] as const)(
    '%s → sent as the query, for every method that takes it',
    async (searchBy) => {
      const { targets } = await callAll('t', { searchBy });
      const expected = METHODS.map(([rest]) => `/trackers/t${rest}?searchBy=${searchBy}`);
      expect(targets.toSorted()).toEqual(expected.toSorted());
    },
  );
});

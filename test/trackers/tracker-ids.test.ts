import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestValidationError } from '../../src/errors.ts';
import { anyText } from '../support/any-text.ts';
import { makeClient, rejectionOf, type SeenRequest } from '../support/make-client.ts';

const queryOf = (request: SeenRequest | undefined) =>
  Object.fromEntries(new URL(request?.url ?? '').searchParams);

describe('ids in paths', () => {
  const ids = ['a/b', 'order 42', 'a?b#c', 'é', '%41', 'search/x', '../couriers', 'a\\b', '😀'];

  test.each(ids)('%j → one segment, for every method that takes an id', async (id) => {
    const segment = encodeURIComponent(id);
    const { client, requests } = makeClient({ status: 404 });
    const calls = [
      [() => client.trackers.get(id), ''],
      [() => client.trackers.update(id, { isSubscribed: false }), ''],
      [() => client.trackers.results(id), '/results'],
      [() => client.trackers.resendWebhookEvents(id), '/webhook-events/resend'],
      [() => client.trackers.webhookHistory(id), '/webhook-history/download'],
    ] as const;
    for (const [call] of calls) await rejectionOf(call());
    expect(requests.map(({ target }) => target)).toEqual(
      calls.map(([, rest]) => `/trackers/${segment}${rest}`),
    );
  });

  test.each(['', ' ', '.', '..', '%2e%2e', '%2E.', '%252e', '\ud800'])(
    '%j → RequestValidationError for every method that takes an id, nothing is sent',
    async (id) => {
      const { client, requests } = makeClient({ status: 404 });
      const calls = [
        client.trackers.get(id),
        client.trackers.update(id, { isSubscribed: false }),
        client.trackers.results(id),
        client.trackers.resendWebhookEvents(id),
        client.trackers.webhookHistory(id),
      ];
      for (const call of calls) {
        expect(await rejectionOf(call)).toMatchObject({
          name: 'RequestValidationError',
          message: expect.stringMatching(/^Expected `trackerId` to be /),
        });
      }
      expect(requests).toHaveLength(0);
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

  test.each(['AB/../..', '../..', 'x', 'AB 123'])(
    'tracking number %j → RequestValidationError, nothing is sent',
    async (number) => {
      const { client, requests } = makeClient({ body: { data: { trackings: [] } } });
      expect(await rejectionOf(client.trackers.resultsByTrackingNumber(number))).toMatchObject({
        name: 'RequestValidationError',
        message: expect.stringContaining('`trackingNumber`'),
      });
      expect(requests).toHaveLength(0);
    },
  );
});

describe('searchBy', () => {
  test.each(['trackerId', 'clientTrackerId'] as const)(
    '%s → sent as the query, for every method that takes it',
    async (searchBy) => {
      const { client, requests } = makeClient({ status: 404 });
      const options = { searchBy };
      const calls = [
        client.trackers.get('t', options),
        client.trackers.update('t', { isSubscribed: false }, options),
        client.trackers.results('t', options),
        client.trackers.resendWebhookEvents('t', options),
        client.trackers.webhookHistory('t', options),
      ];
      for (const call of calls) await rejectionOf(call);
      expect(requests.map(queryOf)).toEqual(calls.map(() => ({ searchBy })));
    },
  );

  test('not given → no query', async () => {
    const { client, requests } = makeClient({ status: 404 });
    await rejectionOf(client.trackers.get('t', { timeoutMs: 5_000 }));
    expect(requests[0]?.target).toBe('/trackers/t');
  });

  test('another word → RequestValidationError', async () => {
    const { client } = makeClient({ status: 404 });
    const options = { searchBy: 'trackingNumber' } as unknown as { searchBy: 'trackerId' };
    expect(await rejectionOf(client.trackers.get('t', options))).toMatchObject({
      name: 'RequestValidationError',
      message: 'Expected `searchBy` to be "trackerId" or "clientTrackerId", got a string of 14 characters',
    });
  });
});

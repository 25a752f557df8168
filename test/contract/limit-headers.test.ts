import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { describe, expect, test } from 'vitest';
import { advance, virtualTime } from './support/contract-fake.ts';
import { TRACKER } from './support/samples.ts';
import { type StubRequest, stubClient, watch } from './support/stub-client.ts';

/** The same allowance in either of the two header sets. */
function headersOf(set: 'RateLimit' | 'X-RateLimit', remaining: number, resetSeconds: number) {
  const reset = set === 'RateLimit' ? resetSeconds : Math.ceil(Date.now() / 1000) + resetSeconds;
  return { [`${set}-Limit`]: '10', [`${set}-Remaining`]: String(remaining), [`${set}-Reset`]: String(reset) };
}

/** Calls that start at once, to a service whose successes say what is left. */
async function startsOf(
  count: number,
  headers: (request: StubRequest, nth: number) => Record<string, string>,
) {
  virtualTime();
  const startMs = performance.now();
  let nth = 0;
  const { client, requests } = stubClient(
    (request) => {
      nth += 1;
      const date = new Date().toUTCString();
      return { body: { data: { tracker: TRACKER } }, headers: { date, ...headers(request, nth) } };
    },
    { rateLimit: {} },
  );
  // The first call alone, so that its answer is known to the others.
  await client.trackers.get('t0');
  const others = Array.from({ length: count - 1 }, (_, index) => watch(client.trackers.get(`t${index + 1}`)));
  const sentAfter = async (ms: number) => {
    await advance(Math.max(0, ms - (performance.now() - startMs)));
    return requests.length;
  };
  return { sentAfter, others };
}

describe('what a success says of the allowance', () => {
  test.each(['RateLimit', 'X-RateLimit'] as const)(
    '%s-Remaining: 0, Reset: 1 after one call of ours → the next waits about a second',
    async (set) => {
      const { sentAfter } = await startsOf(2, () => headersOf(set, 0, 1));
      expect(await sentAfter(800)).toBe(1);
      expect(await sentAfter(2500)).toBe(2);
    },
  );

  test('Remaining: 3 after one call of ours → three more go at once, the fourth waits', async () => {
    const { sentAfter } = await startsOf(6, (_request, nth) =>
      headersOf('RateLimit', Math.max(0, 4 - nth), 1),
    );
    expect(await sentAfter(500)).toBe(4);
    expect(await sentAfter(4000)).toBe(6);
  });

  test('Remaining: what our own calls explain → nothing waits within the limit', async () => {
    const { sentAfter } = await startsOf(9, (_request, nth) => headersOf('RateLimit', 10 - nth, 1));
    expect(await sentAfter(500)).toBe(9);
  });

  test('Remaining: 0, Reset: 1 on every answer → its pace, about one a second', async () => {
    const { sentAfter } = await startsOf(6, () => headersOf('RateLimit', 0, 1));
    const sent = await sentAfter(3500);
    expect(sent).toBeGreaterThanOrEqual(3);
    expect(sent).toBeLessThanOrEqual(5);
  });

  test('Remaining: 0, Reset: a day → is not believed so long: the next call is sent or rejects within two minutes', async () => {
    const { others, sentAfter } = await startsOf(2, () => headersOf('RateLimit', 0, 86_400));
    await sentAfter(120_000);
    expect(others.map(({ state }) => state)).not.toContain('pending');
  });
});

test('two clients with limiters of their own, one account, 200 calls → at most 30 refusals, at 75% or more', async () => {
  virtualTime();
  const fake = createFakeTrackingService();
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const response = await fake.fetch(new Request(input, init));
    // An answer takes its time, or a client would know all before it sends.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return response;
  };
  const options = { baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch, logLevel: 'silent' } as const;
  const clients = [new TrackingClient(options), new TrackingClient(options)];
  const calls = clients.flatMap((client) => Array.from({ length: 100 }, () => watch(client.trackers.list())));
  // 200 calls at 10 a second take 20 seconds at best.
  await advance(20_000 / 0.75);
  const refused = fake.requests.filter(({ status }) => status === 429).length;
  const pending = calls.filter(({ state }) => state !== 'resolved').length;
  expect(pending).toBe(0);
  expect(refused).toBeLessThanOrEqual(30);
});

// Test runners fake timers in different ways: node:test does not fake `performance`, the others do. jest uses the timers of
// sinon; `npm run test:consumers` runs jest itself.
import { mock } from 'node:test';
import FakeTimers from '@sinonjs/fake-timers';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RedisLimiter } from '../../../src/redis/index.ts';
import { createFakeTrackingService } from '../../../src/testing/index.ts';
import { MemoryDedupeStore } from '../../../src/webhooks/index.ts';
import { makeClient } from '../../support/make-client.ts';
import { settled } from '../../support/settled.ts';
import { makeHandler, webhook } from '../../webhooks/make-handler.ts';
import { E1, makeInbox, ScriptedStore } from '../../webhooks/support.ts';

interface Runner {
  install(): void;
  tick(ms: number): void;
  uninstall(): void;
  /** The option `now` of a `MemoryDedupeStore`. */
  readonly now?: () => number;
}

let sinon: FakeTimers.Clock | undefined;
const runners: readonly (readonly [string, Runner])[] = [
  [
    'node:test',
    {
      install: () => mock.timers.enable({ apis: ['setTimeout', 'Date'] }),
      tick: (ms) => mock.timers.tick(ms),
      uninstall: () => mock.timers.reset(),
      now: () => Date.now(),
    },
  ],
  [
    'vitest',
    {
      install: () => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] }),
      tick: (ms) => vi.advanceTimersByTime(ms),
      uninstall: () => vi.useRealTimers(),
    },
  ],
  [
    'sinon',
    {
      install: () => {
        sinon = FakeTimers.install({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
      },
      tick: (ms) => sinon?.tick(ms),
      uninstall: () => sinon?.uninstall(),
    },
  ],
];

const hangs = () => new Promise<never>(() => {});

describe.each(runners)('timers of %s', (_, { install, tick, uninstall, now }) => {
  beforeEach(install);
  afterEach(uninstall);

  /** Advances in steps, because a wait may begin only when an earlier one has ended. */
  async function pass(ms: number): Promise<void> {
    for (let step = 0; step < ms / 50; step += 1) {
      tick(50);
      await settled();
    }
  }

  test('a call whose response never comes → TimeoutError after timeoutMs', async () => {
    const { client } = makeClient(hangs, { timeoutMs: 3_000, retry: false });
    const outcome = client.couriers.list().catch((error: unknown) => error);
    await settled();
    await pass(3_000);
    expect(await outcome).toMatchObject({ name: 'TimeoutError', timeoutMs: 3_000 });
  });

  test.each([true, false])(
    'timers faked before the first call: %s → a call that waits for a token is sent when the token is back',
    async (areFakedBefore) => {
      if (!areFakedBefore) uninstall();
      const { client, requests } = makeClient({ body: { data: [] } }, { rateLimit: {} });
      await client.couriers.list();
      if (!areFakedBefore) install();
      const waiting = client.couriers.list();
      await settled();
      expect(requests).toHaveLength(1);
      await pass(1_050);
      await waiting;
      expect(requests).toHaveLength(2);
    },
  );

  test('Redis does not reply → the limiter grants its share when all tokens are back', async () => {
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const limiter = new RedisLimiter({ redis: { eval: hangs, evalSha: hangs }, logger });
    const { client, requests } = makeClient({ body: { data: [] } }, { rateLimit: undefined, limiter });
    const waiting = client.couriers.list();
    await settled();
    expect(requests).toHaveLength(0);
    await pass(3_000);
    await waiting;
    expect(requests).toHaveLength(1);
  });

  test('a poll with an interval of a minute → the first update after a minute', async () => {
    const fake = createFakeTrackingService({ resultsDelayMs: 0 });
    const { fetch, baseUrl, apiKey } = fake;
    const { client } = makeClient([], { fetch, baseUrl, apiKey });
    const { trackerId } = await client.trackers.create({ trackingNumber: 'RR123456785CN' });
    const onUpdate = vi.fn();
    const polls = client.trackers.poll(trackerId, { intervalMs: 60_000 });
    const first = polls.next().then(onUpdate);
    await pass(59_900);
    expect(onUpdate).not.toHaveBeenCalled();
    await pass(200);
    await first;
    await polls.return();
  });

  test('busyTimeoutMs of 2 s → busy after 2 s', async () => {
    const store = new ScriptedStore();
    await store.lease('e1');
    const onDone = vi.fn();
    const processing = makeInbox({ store, busyTimeoutMs: 2_000 })
      .process(E1, () => {})
      .finally(onDone);
    await pass(1_900);
    expect(onDone).not.toHaveBeenCalled();
    await pass(200);
    expect((await processing).outcome).toBe('busy');
  });

  test('a store without a time limit of its own that hangs → unavailable after 4.5 s', async () => {
    const store = new ScriptedStore();
    store.on('claim', hangs);
    const processing = makeInbox({ store }).process(E1, () => {});
    await settled();
    await pass(4_500);
    expect((await processing).outcome).toBe('unavailable');
  });

  test('a callback that hangs → 503 after 12 s', async () => {
    const responding = makeHandler({ onEvent: hangs })(webhook('e1'));
    await pass(12_000);
    expect((await responding).status).toBe(503);
  });

  test('a lease in a memory store → ends with the mocked time', async () => {
    const store = new MemoryDedupeStore(now && { now });
    await store.claim(['key'], { token: 'dead', leaseMs: 60_000 });
    tick(60_000);
    const claims = await store.claim(['key'], { token: 'mine', leaseMs: 60_000 });
    expect(claims).toEqual([{ status: 'acquired', attempt: 2 }]);
  });
});

import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createWebhookHandler, MemoryDedupeStore } from '../../src/webhooks/index.ts';
import { post, SECRET } from './make-handler.ts';
import { makeInbox, payload, tracking, useFakeTimers } from './support.ts';

useFakeTimers();

const eventId = fc.constantFrom('e1', 'e2', 'e3', 'e4');
const body = fc.array(fc.tuple(fc.constantFrom('t1', 't2'), fc.array(eventId, { maxLength: 4 })), {
  minLength: 1,
  maxLength: 3,
});
/** How long a call of the callback takes in milliseconds, and whether it fails at the end. */
const fate = fc.record({ tookMs: fc.constantFrom(0, 30, 2_000, 20_000), fails: fc.boolean() });

test('any webhooks at once to two receivers with one store and slow, failing callbacks, resent until 2xx → every event handled exactly once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(body, { minLength: 1, maxLength: 6 }),
      fc.array(fate, { maxLength: 12 }),
      async (bodies, fates) => {
        const handled = new Map<string, number>();
        const running = new Set<string>();
        const fatesLeft = [...fates];
        let overlaps = 0;
        const store = new MemoryDedupeStore();
        const receivers = [1, 2].map(() =>
          createWebhookHandler({
            secret: SECRET,
            inbox: makeInbox({ store, leaseMs: 1_000 }),
            onEvent: async (_event, { key }) => {
              if (running.has(key)) overlaps += 1;
              running.add(key);
              const { tookMs, fails } = fatesLeft.pop() ?? { tookMs: 0, fails: false };
              if (tookMs > 0) await new Promise((resolve) => setTimeout(resolve, tookMs));
              running.delete(key);
              if (fails) throw new Error('failed');
              handled.set(key, (handled.get(key) ?? 0) + 1);
            },
          }),
        );
        let unfinished = bodies.length;
        for (const [index, items] of bodies.entries()) {
          void (async () => {
            for (let attempt = index; ; attempt += 1) {
              const sent = payload(...items.map(([tracker, events]) => tracking(tracker, ...events)));
              const response = await receivers[attempt % 2]?.(post(sent));
              if (response?.ok) break;
              await new Promise((resolve) => setTimeout(resolve, 500));
            }
            unfinished -= 1;
          })();
        }
        for (let second = 0; unfinished > 0; second += 1) {
          expect(second).toBeLessThan(3_600);
          await vi.advanceTimersByTimeAsync(1_000);
        }
        const expected = new Set(
          bodies
            .flat()
            .flatMap(([tracker, events]) => events.map((id) => `tracking/events:${tracker}:${id}`)),
        );
        expect(new Set(handled.keys())).toEqual(expected);
        expect([...handled.values()].every((count) => count === 1)).toBe(true);
        expect(overlaps).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
});

test('any webhook delivered several times at once to two receivers → no two callbacks of a tracker overlap, each event handled once', async () => {
  await fc.assert(
    fc.asyncProperty(
      body,
      fc.integer({ min: 2, max: 4 }),
      fc.array(fc.constantFrom(0, 30, 700, 1_500), { minLength: 1, maxLength: 8 }),
      async (items, copies, durations) => {
        const store = new MemoryDedupeStore();
        const inboxes = [1, 2].map(() => makeInbox({ store, leaseMs: 1_000, busyTimeoutMs: 100_000 }));
        const running = new Map<string, number>();
        const handled: string[] = [];
        let overlaps = 0;
        const sent = payload(...items.map(([tracker, events]) => tracking(tracker, ...events)));
        const deliveries = Array.from({ length: copies }, (_, copy) =>
          inboxes[copy % 2]?.process(sent, async (_event, { key, message }) => {
            const tracker = String(message.tracker.trackerId);
            if ((running.get(tracker) ?? 0) > 0) overlaps += 1;
            running.set(tracker, (running.get(tracker) ?? 0) + 1);
            const tookMs = durations[handled.length % durations.length];
            await new Promise((resolve) => setTimeout(resolve, tookMs));
            running.set(tracker, (running.get(tracker) ?? 0) - 1);
            handled.push(key);
          }),
        );
        await vi.advanceTimersByTimeAsync(100_000);
        for (const delivery of deliveries) expect(await delivery).toMatchObject({ outcome: 'done' });
        const expected = items.flatMap(([tracker, events]) =>
          events.map((id) => `tracking/events:${tracker}:${id}`),
        );
        expect(handled.toSorted()).toEqual([...new Set(expected)].sort());
        expect(overlaps).toBe(0);
      },
    ),
    { numRuns: 60 },
  );
});

import { randomUUID } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { TrackingClient } from '../../src/index.ts';
import { usedHeapBytes } from '../heap.ts';
import { formatCount } from '../statistics.ts';
import type { Figure } from './figure.ts';
import type { VirtualClock } from './virtual-clock.ts';

const MANY_IDS = 300_000;
const MAX_BLOCK_MS = 50;
const IDLE_TRACKERS = 10_000;
const EVENTS_PER_TRACKER = 12;
const MAX_IDLE_BYTES = 2048;

const CLIENT = { baseUrl: 'https://tracking.test/v1', apiKey: 'bench' };
const rejectCalls = () => Promise.reject(new Error('no poll is due in this bench'));

/** Reads 300,000 ids in real time, and measures for how long the event loop is blocked. */
export async function measureManyIds(): Promise<Figure> {
  const ids = Array.from({ length: MANY_IDS }, (_, index) => `tracker-${index}-0123456789abcdef`);
  const stream = new TrackingClient({ ...CLIENT, fetch: rejectCalls }).trackers.pollMany(ids);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const startedAt = performance.now();
  delays.enable();
  const pending = stream.next();
  while (stream.size < MANY_IDS) await new Promise((resolve) => setTimeout(resolve, 20));
  const readMs = performance.now() - startedAt;
  delays.disable();
  await stream.return();
  await pending;
  const blockedMs = delays.max / 1e6;
  return {
    name: `pollMany reads ${formatCount(MANY_IDS)} ids of an array`,
    target: `no block of the event loop longer than ${MAX_BLOCK_MS} ms`,
    isReached: blockedMs <= MAX_BLOCK_MS,
    found: `longest block ${blockedMs.toFixed(1)} ms, ${readMs.toFixed(0)} ms in all`,
  };
}

/** Measures the memory of a tracker between its polls, with the ids of its past events. */
export async function measureIdleHeap(clock: VirtualClock): Promise<Figure> {
  // The first stream pays for compiled code and caches.
  await measureBytesPerTracker(clock, 1000);
  const bytes = await measureBytesPerTracker(clock, IDLE_TRACKERS);
  return {
    name: `heap per idle tracker, ${formatCount(IDLE_TRACKERS)} trackers with ${EVENTS_PER_TRACKER} events each`,
    target: `<= ${MAX_IDLE_BYTES} bytes`,
    isReached: bytes > 0 && bytes <= MAX_IDLE_BYTES,
    found: `${bytes.toFixed(0)} bytes, the id included`,
  };
}

async function measureBytesPerTracker(clock: VirtualClock, count: number): Promise<number> {
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const trackerId = new Request(input, init).url.split('/').at(-2) ?? '';
    const events = Array.from({ length: EVENTS_PER_TRACKER }, () => ({
      eventId: randomUUID(),
      occurrenceDatetime: '2026-03-04T17:12:57',
      statusMilestone: 'in_transit',
      status: 'Arrived at the sorting centre',
    }));
    const flags = { isTracked: true, isSubscribed: true, createdAt: '2026-03-01T11:09:00.000Z' };
    const tracker = { trackerId, trackingNumber: 'RR123456785CN', ...flags };
    return Response.json({ data: { trackings: [{ tracker, events }] } });
  };
  const client = new TrackingClient({ ...CLIENT, fetch, rateLimit: false });
  function* generateIds() {
    for (let index = 0; index < count; index += 1) yield randomUUID();
  }
  const heapBefore = await usedHeapBytes();
  const stream = client.trackers.pollMany(generateIds());
  let updates = 0;
  const read = async () => {
    for await (const _ of stream) updates += 1;
  };
  const reading = read();
  await clock.run(() => updates === count);
  const bytes = ((await usedHeapBytes()) - heapBefore) / count;
  await stream.return();
  await reading;
  return bytes;
}

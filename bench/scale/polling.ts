import { TrackingClient } from '../../src/index.ts';
import { createFakeTrackingService, type FakeTrackingService } from '../../src/testing/index.ts';
import type { Figure } from '../report.ts';
import { formatCount, median } from '../statistics.ts';
import type { VirtualClock } from './virtual-clock.ts';

const TRACKERS = 10_000;
/** Most of the time of a poll goes into its events; `idle-heap.ts` measures trackers with more of them. */
const EVENTS_PER_TRACKER = 3;
const INTERVAL_MS = 20 * 60_000;
const MAX_DEVIATION_PERCENT = 0.2;
const MAX_WAIT_MS = 50;

/** Creates a generator of numbers from 0 to 1 that are the same in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Creates trackers that have a history. */
async function createTrackers(clock: VirtualClock, fake: FakeTrackingService): Promise<string[]> {
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const inputs = Array.from({ length: TRACKERS + 1 }, (_, index) => ({
    trackingNumber: `LP${String(index).padStart(9, '0')}CN`,
  }));
  const ids: string[] = [];
  const create = async () => {
    for await (const { tracker } of client.trackers.createMany(inputs))
      if (tracker) ids.push(tracker.trackerId);
  };
  await clock.runUntil(create());
  const events = Array.from({ length: EVENTS_PER_TRACKER }, () => ({}));
  for (const { trackingNumber } of inputs) fake.shipment(trackingNumber).addEvent(...events);
  return ids;
}

/** Polls 10,000 trackers for hours of virtual time, with interactive calls in between. */
export async function measurePolling(
  clock: VirtualClock,
  hours: number,
): Promise<[polling: Figure, interactive: Figure]> {
  const random = createRandom(7);
  let refused = 0;
  const fake = createFakeTrackingService({
    resultsDelayMs: 0,
    limitWindow: 'sliding',
    webhooks: false,
    historyLimit: 10,
    latencyMs: (endpoint) => (endpoint === 'trackers.results' ? Math.round(10 + 30 * random()) : 5),
    onRequest: ({ status }) => {
      if (status === 429) refused += 1;
    },
  });
  const [interactiveId = '', ...ids] = await createTrackers(clock, fake);

  const lastPolls = new Map<string, number>();
  const underWay = new Set<string>();
  const waitsMs: number[] = [];
  let [maxDeviationMs, overlaps, maxTimers] = [0, 0, 0];
  let interactiveCalledAt: number | undefined;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const id = url.split('/').at(-2) ?? '';
    if (underWay.has(id)) overlaps += 1;
    underWay.add(id);
    if (id === interactiveId) {
      waitsMs.push(clock.now - (interactiveCalledAt ?? clock.now));
      interactiveCalledAt = undefined;
    } else {
      const gapMs = clock.now - (lastPolls.get(id) ?? clock.now - INTERVAL_MS);
      maxDeviationMs = Math.max(maxDeviationMs, Math.abs(gapMs - INTERVAL_MS));
      lastPolls.set(id, clock.now);
    }
    try {
      return await fake.fetch(input, init);
    } finally {
      underWay.delete(id);
    }
  };
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch });
  refused = 0;

  const endsAt = clock.now + hours * 3_600_000;
  const stream = client.trackers.pollMany(ids, { intervalMs: INTERVAL_MS });
  let updates = 0;
  const read = async () => {
    for await (const _ of stream) updates += 1;
  };
  const reading = read();
  const callInteractively = async () => {
    if (clock.now >= endsAt) return;
    interactiveCalledAt = clock.now;
    await client.trackers.results(interactiveId);
    setTimeout(callInteractively, 5000 + 10_000 * random());
  };
  setTimeout(callInteractively, INTERVAL_MS / 2);
  await clock.run(() => {
    // Until the first update, the stream still reads ids and sets timers of 0 ms now and then.
    const isIdle = updates > 0 && underWay.size === 0 && interactiveCalledAt === undefined;
    // The timer of the next interactive call is the bench's own, so it does not count.
    if (isIdle && client.rateLimits()['trackers.results'].queued === 0)
      maxTimers = Math.max(maxTimers, clock.timerCount - 1);
    return clock.now >= endsAt;
  });
  await stream.return();
  await reading;
  await clock.run(() => false);

  const deviationPercent = (100 * maxDeviationMs) / INTERVAL_MS;
  const maxWaitMs = Math.max(...waitsMs);
  return [
    {
      name: `pollMany of ${formatCount(ids.length)} trackers, interval 20 min, 10 requests/s, ${hours} h`,
      target: `every interval within ${MAX_DEVIATION_PERCENT}%, one timer, zero 429s`,
      isReached:
        deviationPercent <= MAX_DEVIATION_PERCENT && maxTimers === 1 && refused === 0 && overlaps === 0,
      found: `${formatCount(updates)} polls, within ${deviationPercent.toFixed(2)}%, ${maxTimers} timer, ${refused} responses with 429`,
    },
    {
      name: `an interactive \`results\` call meanwhile, ${formatCount(waitsMs.length)} calls`,
      target: `waits <= ${MAX_WAIT_MS} ms`,
      isReached: maxWaitMs <= MAX_WAIT_MS,
      found: `median ${median(waitsMs).toFixed(0)} ms, longest ${maxWaitMs.toFixed(0)} ms`,
    },
  ];
}

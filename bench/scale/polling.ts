import { TrackingClient } from '../../src/index.ts';
import { createFakeTrackingService, type FakeTrackingService } from '../../src/testing/index.ts';
import { type Figure, quantile, seededRandom } from './case.ts';
import { inVirtualTime, real, type VirtualClock } from './virtual-clock.ts';

const TRACKERS = 10_000;
const EVENTS_PER_TRACKER = 12;
const INTERVAL_MS = 20 * 60_000;
const LARGEST_DEVIATION_PERCENT = 1;
const LONGEST_WAIT_MS = 50;

/** What the service and the clock saw of a long run. */
class Observer {
  readonly lastStartOf = new Map<string, number>();
  readonly waitsMs: number[] = [];
  gaps = 0;
  largestGapMs = 0;
  smallestGapMs = Number.POSITIVE_INFINITY;
  overlaps = 0;
  mostTimers = 0;
  interactiveAskedAt: number | undefined;
  readonly #interactiveId: string;
  readonly #underWay = new Set<string>();

  constructor(interactiveId: string) {
    this.#interactiveId = interactiveId;
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0 && this.interactiveAskedAt === undefined;
  }

  /** Notes a request; returns what to call when it is answered. */
  note(id: string, now: number): () => void {
    if (this.#underWay.has(id)) this.overlaps += 1;
    this.#underWay.add(id);
    if (id === this.#interactiveId) {
      if (this.interactiveAskedAt !== undefined) this.waitsMs.push(now - this.interactiveAskedAt);
      this.interactiveAskedAt = undefined;
    } else {
      this.#noteStart(id, now);
    }
    return () => this.#underWay.delete(id);
  }

  #noteStart(id: string, now: number): void {
    const last = this.lastStartOf.get(id);
    if (last !== undefined) {
      this.gaps += 1;
      this.largestGapMs = Math.max(this.largestGapMs, now - last);
      this.smallestGapMs = Math.min(this.smallestGapMs, now - last);
    }
    this.lastStartOf.set(id, now);
  }
}

function numberOf(index: number): string {
  return `LP${String(index).padStart(9, '0')}CN`;
}

/** Trackers with a history. */
async function createTrackers(clock: VirtualClock, fake: FakeTrackingService): Promise<string[]> {
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const inputs = Array.from({ length: TRACKERS + 1 }, (_, index) => ({ trackingNumber: numberOf(index) }));
  const ids: string[] = [];
  const create = async () => {
    for await (const { tracker } of client.trackers.createMany(inputs))
      if (tracker) ids.push(tracker.trackerId);
  };
  await inVirtualTime(clock, create());
  for (const { trackingNumber } of inputs) {
    fake.shipment(trackingNumber).addEvent(...Array.from({ length: EVENTS_PER_TRACKER }, () => ({})));
  }
  return ids;
}

/** Polls 10,000 trackers for hours of virtual time, with interactive calls in between. */
export async function measurePolling(
  clock: VirtualClock,
  hours: number,
  maxPerSecond?: number,
): Promise<Figure[]> {
  const random = seededRandom(7);
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
  const observer = new Observer(interactiveId);
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const answered = observer.note(new Request(input, init).url.split('/').at(-2) ?? '', clock.now);
    try {
      return await fake.fetch(input, init);
    } finally {
      answered();
    }
  };
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch });
  await inVirtualTime(clock, client.trackers.results(interactiveId));
  refused = 0;

  const startedAt = clock.now;
  const endsAt = startedAt + hours * 3_600_000;
  const realStartedAt = real.now();
  const options = maxPerSecond === undefined ? {} : { maxPerSecond };
  const stream = client.trackers.pollMany(ids, { intervalMs: INTERVAL_MS, ...options });
  let updates = 0;
  const read = async () => {
    for await (const _ of stream) updates += 1;
  };
  const reading = read();
  const ask = () => {
    if (clock.now >= endsAt) return;
    observer.interactiveAskedAt = clock.now;
    client.trackers.results(interactiveId).then(
      () => setTimeout(ask, 5000 + 10_000 * random()),
      (error: unknown) => {
        throw error;
      },
    );
  };
  setTimeout(ask, INTERVAL_MS / 2);

  await clock.run(() => {
    const { isIdle } = observer;
    // Not counted: the one timer of the bench itself, which asks the next interactive question.
    if (isIdle && client.rateLimits()['trackers.results'].queued === 0) {
      observer.mostTimers = Math.max(observer.mostTimers, clock.timerCount - 1);
    }
    return clock.now >= endsAt;
  });
  await stream.return();
  await reading;
  await clock.run(() => false);
  return figuresOf();

  function figuresOf(): Figure[] {
    const deviationPercent =
      (Math.max(observer.largestGapMs - INTERVAL_MS, INTERVAL_MS - observer.smallestGapMs) / INTERVAL_MS) *
      100;
    const { gaps, overlaps, mostTimers, waitsMs } = observer;
    const longestWaitMs = Math.max(...waitsMs);
    const budget = maxPerSecond === undefined ? '' : `, \`maxPerSecond: ${maxPerSecond}\``;
    const name = `pollMany of ${ids.length.toLocaleString('en')} trackers, interval 20 min, 10 requests/s${budget}, ${hours} h`;
    return [
      {
        name,
        target: `every interval within ${LARGEST_DEVIATION_PERCENT}%, one timer, zero 429s`,
        isReached:
          deviationPercent <= LARGEST_DEVIATION_PERCENT &&
          mostTimers === 1 &&
          refused === 0 &&
          overlaps === 0,
        found: `${updates.toLocaleString('en')} polls, within ${deviationPercent.toFixed(2)}%, ${mostTimers} timer, ${refused} answers of 429`,
        values: {
          hours,
          updates,
          gaps,
          overlaps,
          deviationPercent,
          largestGapMs: observer.largestGapMs,
          smallestGapMs: observer.smallestGapMs,
          mostTimers,
          refused,
          realSeconds: (real.now() - realStartedAt) / 1000,
        },
      },
      {
        name: `an interactive \`results\` call meanwhile, ${waitsMs.length.toLocaleString('en')} calls`,
        target: `waits <= ${LONGEST_WAIT_MS} ms`,
        isReached: longestWaitMs <= LONGEST_WAIT_MS,
        found: `median ${quantile(waitsMs, 0.5).toFixed(0)} ms, longest ${longestWaitMs.toFixed(0)} ms`,
        values: { calls: waitsMs.length, medianMs: quantile(waitsMs, 0.5), longestWaitMs },
      },
    ];
  }
}

import fc from 'fast-check';
import { buildEventKey, type PollManyUpdate, type TrackerToPoll } from '../../src/index.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { EMPTY, failure, NOT_FOUND, NOT_READY } from '../polling/polled-service.ts';
import { makeCounter } from '../support/counting.ts';
import type { Made } from '../support/made.ts';
import { makeClient, networkFailure, toResponse } from '../support/make-client.ts';
import { must, printed } from './harness.ts';
import { Problems, pause, scheduleProperty } from './virtual-time.ts';

const LIMIT_MS = 24 * 3_600_000;
const TIMEOUT_MS = 5_000;
/** Longer than every wait of the source, the reader and the caller. */
const AFTERMATH_MS = 60_000;

/** What happens to one request; `good` gives the results or the record. */
const fate = fc.record({
  kind: fc.oneof(
    { weight: 5, arbitrary: fc.constant('good' as const) },
    { weight: 2, arbitrary: fc.constantFrom('notReady', 'empty') },
    { weight: 3, arbitrary: fc.constantFrom('serverError', 'tooMany', 'reset', 'hangs') },
    { weight: 1, arbitrary: fc.constantFrom('unknownTracker', 'wrongKey') },
  ),
  tookMs: fc.constantFrom(0, 0, 80, 700, 4_000),
  retryAfterSeconds: fc.constantFrom(undefined, 1, 3, 30),
});
type Fate = Made<typeof fate>;

const tracker = fc.record({
  /** When each event comes. Those after the end of the tracking come with the end. */
  eventsAtMs: fc.array(fc.nat(25_000), { maxLength: 5 }),
  stopsAtMs: fc.nat(30_000),
  lacksIsTracked: fc.constantFrom(false, false, true),
  /** Each response has each event twice. */
  repeatsEvents: fc.boolean(),
  knownEvents: fc.nat(2),
  initialDelayMs: fc.constantFrom(undefined, 0, 2_500),
  intervalMs: fc.constantFrom(1_000, 1_700, 5_000, 20_000),
  /** When it is added to the stream; otherwise it comes from the source. */
  addedAtMs: fc.option(fc.nat(10_000), { freq: 3 }),
  deletedAtMs: fc.option(fc.nat(30_000), { freq: 6 }),
});

const schedule = fc.record({
  trackers: fc.array(tracker, { minLength: 1, maxLength: 8, size: 'max' }),
  fates: fc.array(fate, { maxLength: 60, size: 'max' }),
  maxPerSecond: fc.constantFrom(undefined, 1, 4, 20),
  concurrency: fc.constantFrom(1, 3, 10),
  maxConsecutiveErrors: fc.constantFrom(undefined, 1, 3, Number.POSITIVE_INFINITY),
  retries: fc.constantFrom(0, 0, 2),
  /** Requests per second that the service allows. */
  limit: fc.constantFrom(2, 10),
  readMs: fc.constantFrom(0, 0, 50, 3_000),
  sourceDelayMs: fc.constantFrom(undefined, 0, 400, 10_000),
  sourceEnd: fc.constantFrom('ends', 'ends', 'throws', 'hangs'),
  maxDurationMs: fc.constantFrom(undefined, undefined, 15_000),
  abortsAtMs: fc.option(fc.nat(30_000), { freq: 4 }),
  leavesAfter: fc.option(fc.integer({ min: 1, max: 20 }), { freq: 4 }),
});
type Schedule = Made<typeof schedule>;

/** What the service and the reader know about one tracker. */
interface Facts {
  readonly id: string;
  readonly intervalMs: number;
  readonly initialDelayMs: number | undefined;
  readonly events: readonly { readonly eventId: string; readonly atMs: number }[];
  readonly stopsAtMs: number;
  readonly lacksIsTracked: boolean;
  readonly repeatsEvents: boolean;
  readonly known: ReadonlySet<string>;
  readonly reported: Set<string>;
  polledAt: number;
  /** When its latest request ended. */
  endedAt: number;
  /** When its first poll is due; undefined until the stream knows it. */
  firstDueAt: number | undefined;
  waitsUntil: number;
  isUnderWay: boolean;
  /** Failed polls in a row, without those that do not count towards `maxConsecutiveErrors`. */
  failures: number;
  /** The failures before the current poll. */
  failuresBefore: number;
  hasSucceeded: boolean;
  /** A failure came after which every later poll would fail, too. */
  hasFailedForGood: boolean;
  /** The last update was read, or the tracker was deleted. */
  isOver: boolean;
}

function makeFacts(trackers: Schedule['trackers']): Facts[] {
  return trackers.map(({ eventsAtMs, stopsAtMs, knownEvents, ...rest }, index) => {
    const events = eventsAtMs.map((atMs, at) => ({ eventId: `e${at}`, atMs: Math.min(atMs, stopsAtMs) }));
    return {
      id: `tracker-${index}`,
      events,
      stopsAtMs,
      lacksIsTracked: rest.lacksIsTracked,
      repeatsEvents: rest.repeatsEvents,
      intervalMs: rest.intervalMs,
      initialDelayMs: rest.initialDelayMs,
      known: new Set(events.slice(0, knownEvents).map(({ eventId }) => eventId)),
      reported: new Set(),
      polledAt: Number.NEGATIVE_INFINITY,
      endedAt: Number.NEGATIVE_INFINITY,
      firstDueAt: undefined,
      waitsUntil: 0,
      isUnderWay: false,
      failures: 0,
      failuresBefore: 0,
      hasSucceeded: false,
      hasFailedForGood: false,
      isOver: false,
    };
  });
}

/** Computes when the next poll is due: a whole number of intervals after the last one, and not before its `Retry-After`. */
function computeDueAt({ polledAt, endedAt, firstDueAt, intervalMs, waitsUntil }: Facts): number {
  if (polledAt < 0) return firstDueAt ?? Number.POSITIVE_INFINITY;
  const intervals = Math.max(1, Math.ceil((endedAt - polledAt) / intervalMs));
  return Math.max(polledAt + intervals * intervalMs, waitsUntil);
}

function noteAdded(facts: Facts): void {
  facts.firstDueAt = performance.now() + (facts.initialDelayMs ?? facts.intervalMs);
}

function toTracker({ id, known, initialDelayMs }: Facts): TrackerToPoll {
  const knownKeys = [...known].map((eventId) => buildEventKey({ trackerId: id }, { eventId }));
  return { id, knownKeys, initialDelayMs };
}

/** A service that answers each request as its fate says, and checks when requests come. */
class Service extends Problems {
  readonly #schedule: Schedule;
  readonly #facts: ReadonlyMap<string, Facts>;
  readonly #fates: Iterator<Fate>;
  readonly #counters;
  #underWay = 0;
  #firstRequestAt: number | undefined;
  #requests = 0;
  #lastPollAt = Number.NEGATIVE_INFINITY;
  isOver = false;

  constructor(schedule: Schedule, all: readonly Facts[]) {
    super();
    this.#schedule = schedule;
    this.#facts = new Map(all.map((facts) => [facts.id, facts]));
    this.#fates = schedule.fates.values();
    const makeOne = () => makeCounter('sliding', schedule.limit);
    this.#counters = { results: makeOne(), record: makeOne() };
  }

  /** The stream has ended, so requests that were under way must be aborted by now. */
  noteEnd(): void {
    this.note(this.#underWay === 0, () => `${this.#underWay} requests go on after the end`);
  }

  /** A poll begins. */
  notePoll(id: string): void {
    const facts = this.#facts.get(id);
    this.note(facts !== undefined, () => `a poll of ${id}`);
    if (facts === undefined) return;
    const { maxConsecutiveErrors = 5, retries, maxPerSecond } = this.#schedule;
    const { intervalMs } = facts;
    const now = performance.now();
    const gapMs = now - this.#lastPollAt;
    const isPaced = maxPerSecond === undefined || gapMs >= 1_000 / maxPerSecond;
    this.note(isPaced, () => `a poll ${gapMs} ms after the one before`);
    this.#lastPollAt = now;
    this.note(now - facts.polledAt >= intervalMs, () => `${id} was polled after ${now - facts.polledAt} ms`);
    const lateMs = now - computeDueAt(facts);
    this.note(lateMs >= -1 && (lateMs < 1 || this.#mayBeLate), () => `${id} was polled ${lateMs} ms late`);
    const hasEnded = facts.hasFailedForGood || (retries === 0 && facts.failures >= maxConsecutiveErrors);
    this.note(!hasEnded, () => `${id} was polled after ${facts.failures} failures`);
    facts.polledAt = now;
    facts.failuresBefore = facts.failures;
  }

  /** A poll waits for its turn, for room, or for the reader. */
  get #mayBeLate(): boolean {
    const { maxPerSecond, concurrency, trackers, readMs } = this.#schedule;
    return maxPerSecond !== undefined || concurrency < trackers.length || readMs > 0;
  }

  async respond(request: Request): Promise<Response> {
    const [, id = '', rest] = /\/trackers\/([^/]+)(\/results)?$/.exec(new URL(request.url).pathname) ?? [];
    const kind = rest === undefined ? 'record' : 'results';
    const facts = this.#facts.get(id);
    if (facts === undefined) throw new Error(`an unknown tracker: ${id}`);
    // The request left before the end, and the stub saw it later.
    request.signal.throwIfAborted();
    this.#noteRequest(facts, kind);
    const fate = this.#fates.next().value ?? { kind: 'good', tookMs: 0, retryAfterSeconds: undefined };
    facts.isUnderWay = true;
    this.#underWay += 1;
    try {
      await pause(fate.kind === 'hangs' ? LIMIT_MS : fate.tookMs, request.signal);
      return this.#answer(facts, kind, fate);
    } catch (error) {
      if (kind === 'results') this.#noteFailure(facts, true);
      throw error;
    } finally {
      facts.isUnderWay = false;
      facts.endedAt = performance.now();
      this.#underWay -= 1;
    }
  }

  #noteRequest(facts: Facts, kind: 'results' | 'record'): void {
    const { maxPerSecond, retries, concurrency } = this.#schedule;
    const now = performance.now();
    this.note(!facts.isUnderWay, () => `two requests for ${facts.id} at once`);
    this.note(!facts.isOver && !this.isOver, () => `a request for ${facts.id} after the end`);
    this.note(this.#underWay < concurrency, () => `${this.#underWay} requests before this one`);
    this.note(this.#counters[kind].tryCount(now), () => 'more requests than the limit allows');
    const isEarly = kind === 'results' && now < facts.waitsUntil;
    this.note(!isEarly, () => `${facts.id} was polled before its Retry-After`);
    // A retry needs no turn. A request may wait for the rate limit after its turn, so only the number of requests is bounded.
    this.#firstRequestAt ??= now;
    this.#requests += 1;
    const turns = 1 + ((now - this.#firstRequestAt) * (maxPerSecond ?? 0)) / 1_000;
    const isPaced = maxPerSecond === undefined || retries > 0 || this.#requests <= turns;
    this.note(isPaced, () => `${this.#requests} requests in ${turns} turns`);
  }

  #noteFailure(facts: Facts, isOutage: boolean): void {
    const { maxConsecutiveErrors } = this.#schedule;
    if (isOutage && facts.hasSucceeded && maxConsecutiveErrors === undefined) return;
    facts.failures = facts.failuresBefore + 1;
  }

  #answer(facts: Facts, kind: 'results' | 'record', fate: Fate): Response {
    const { id, events, lacksIsTracked, repeatsEvents, stopsAtMs } = facts;
    const now = performance.now();
    const isTracked = now < stopsAtMs;
    const isResults = kind === 'results';
    const isRefusal = fate.kind === 'tooMany' || fate.kind === 'serverError';
    if (fate.kind === 'reset' || fate.kind === 'hangs') throw networkFailure('ECONNRESET');
    if (isRefusal || fate.kind === 'wrongKey' || fate.kind === 'unknownTracker') {
      if (isResults) this.#noteFailure(facts, isRefusal);
      // A wrong key ends the polling before its first success.
      const isFinal = fate.kind === 'wrongKey' && isResults && !facts.hasSucceeded;
      if (fate.kind === 'unknownTracker' || isFinal) facts.hasFailedForGood = true;
      if (fate.kind === 'unknownTracker') return toResponse(NOT_FOUND);
      if (fate.kind === 'wrongKey') return toResponse(failure(401, 'auth_invalid_api_key'));
      const { retryAfterSeconds } = fate;
      // A 429 without the header asks for a second.
      const waitSeconds = retryAfterSeconds ?? (fate.kind === 'tooMany' ? 1 : 0);
      if (isResults) facts.waitsUntil = now + waitSeconds * 1_000;
      const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      return toResponse({ ...failure(fate.kind === 'tooMany' ? 429 : 503, 'processing_error'), headers });
    }
    if (!isResults)
      return toResponse({ body: { data: { tracker: { ...TRACKER, trackerId: id, isTracked } } } });
    facts.failures = 0;
    facts.hasSucceeded = true;
    if (fate.kind !== 'good') return toResponse(fate.kind === 'empty' ? EMPTY : NOT_READY);
    const once = events.filter(({ atMs }) => atMs <= now).map(({ eventId }) => ({ eventId }));
    const visible = repeatsEvents ? [...once, ...once] : once;
    const record = { ...TRACKER, trackerId: id, isTracked: lacksIsTracked ? undefined : isTracked };
    return toResponse({ body: { data: { trackings: [{ tracker: record, events: visible }] } } });
  }
}

/** A list or a slow source of the trackers, which records whether it was closed. */
class Source {
  isOpen = false;
  readonly failure = new Error('the source fails');
  readonly #schedule: Schedule;
  readonly #facts: readonly Facts[];

  constructor(schedule: Schedule, facts: readonly Facts[]) {
    this.#schedule = schedule;
    this.#facts = facts;
  }

  open(): Iterable<TrackerToPoll> | AsyncIterable<TrackerToPoll> {
    const { sourceDelayMs, sourceEnd } = this.#schedule;
    if (sourceDelayMs === undefined) return this.#list();
    const trackers = this.#facts.values();
    const next = async (): Promise<IteratorResult<TrackerToPoll>> => {
      this.isOpen = true;
      await pause(sourceDelayMs);
      const { done, value } = trackers.next();
      if (!done) {
        noteAdded(value);
        return { done: false, value: toTracker(value) };
      }
      if (sourceEnd === 'hangs') await new Promise<never>(() => {});
      this.isOpen = false;
      if (sourceEnd === 'throws') throw this.failure;
      return { done, value };
    };
    const close = async (): Promise<IteratorResult<TrackerToPoll>> => {
      this.isOpen = false;
      return { done: true, value: undefined };
    };
    return { [Symbol.asyncIterator]: () => ({ next, return: close }) };
  }

  *#list(): Generator<TrackerToPoll> {
    this.isOpen = true;
    try {
      for (const facts of this.#facts) {
        noteAdded(facts);
        yield toTracker(facts);
      }
      if (this.#schedule.sourceEnd === 'throws') throw this.failure;
    } finally {
      this.isOpen = false;
    }
  }
}

/** Plays a schedule; rejects if an update is wrong or missing, or a request was not allowed. */
async function play(input: Schedule): Promise<void> {
  const { limit, retries, sourceEnd, sourceDelayMs, leavesAfter, readMs } = input;
  const { maxPerSecond, concurrency, maxConsecutiveErrors, maxDurationMs } = input;
  const all = makeFacts(input.trackers);
  const service = new Service(input, all);
  const source = new Source(
    input,
    all.filter((_, index) => input.trackers[index]?.addedAtMs === null),
  );
  const { client } = makeClient((request) => service.respond(request), {
    rateLimit: { limits: { 'trackers.results': limit, 'trackers.get': limit } },
    retry: { retries },
    timeoutMs: TIMEOUT_MS,
    hooks: { onPoll: ({ id }) => service.notePoll(id) },
  });
  const reason = new Error('the caller aborts');
  const controller = new AbortController();
  const { signal } = controller;
  const isEndless = sourceEnd === 'hangs' && sourceDelayMs !== undefined && maxDurationMs === undefined;
  const abortsAtMs = input.abortsAtMs ?? (isEndless ? AFTERMATH_MS : undefined);
  const abort = () => {
    service.isOver = true;
    controller.abort(reason);
  };
  const timer = abortsAtMs === undefined ? undefined : setTimeout(abort, abortsAtMs);
  const startedAt = performance.now();
  const stream = client.trackers.pollMany(source.open(), {
    intervalMs: ({ id }) => all.find((facts) => facts.id === id)?.intervalMs ?? 0,
    ...{ maxPerSecond, concurrency, maxConsecutiveErrors, signal },
    ...(maxDurationMs !== undefined && { maxDurationMs }),
  });
  for (const [index, { addedAtMs, deletedAtMs }] of input.trackers.entries()) {
    const facts = all[index];
    if (facts === undefined) continue;
    if (addedAtMs !== null)
      void pause(addedAtMs).then(() => {
        if (service.isOver) return;
        service.note(stream.add(toTracker(facts)), () => `${facts.id} was not added`);
        noteAdded(facts);
      });
    if (deletedAtMs !== null)
      void pause(deletedAtMs).then(() => {
        if (!stream.delete(facts.id)) return;
        facts.isOver = true;
        void pause(1).then(() =>
          service.note(!facts.isUnderWay, () => `the request for ${facts.id} goes on after its deletion`),
        );
      });
  }

  let updates = 0;
  let error: unknown;
  try {
    for await (const update of stream) {
      updates += 1;
      checkUpdate(update, all, input);
      if (updates === leavesAfter) break;
      if (readMs > 0) await pause(readMs);
    }
  } catch (caught) {
    error = caught;
  }
  const tookMs = performance.now() - startedAt;
  const wasAborted = signal.aborted;
  service.isOver = true;
  clearTimeout(timer);
  await pause(1);
  service.noteEnd();
  // Later requests would be noted, and a slow source ends.
  await pause(AFTERMATH_MS);
  service.check();
  must(!source.isOpen, () => 'the source was not closed');
  if (error !== undefined) {
    const isExpected =
      (wasAborted && error === reason) || (sourceEnd === 'throws' && error === source.failure);
    must(isExpected, () => `ended with ${printed(error)}`);
    // The reader may have been busy with an update.
    const isInTime = error !== reason || abortsAtMs === undefined || tookMs <= abortsAtMs + readMs;
    must(isInTime, () => `ended ${tookMs} ms after the start, aborted after ${abortsAtMs} ms`);
    return;
  }
  // When the time is up, the reader still gets the updates of the polls that have ended.
  const endsByMs = (maxDurationMs ?? LIMIT_MS) + (concurrency + 1) * readMs;
  must(tookMs <= endsByMs, () => `ended after ${tookMs} ms, with a maxDurationMs of ${maxDurationMs}`);
  if (updates === leavesAfter || (maxDurationMs !== undefined && tookMs >= maxDurationMs)) return;
  must(sourceEnd === 'ends' || (sourceEnd === 'hangs' && sourceDelayMs === undefined), () => 'no error');
  const open = all.filter(({ isOver, firstDueAt }) => firstDueAt !== undefined && !isOver);
  must(open.length === 0, () => `the stream ended before ${printed(open)}`);
}

function checkUpdate(update: PollManyUpdate, all: readonly Facts[], input: Schedule): void {
  const facts = all.find(({ id }) => id === update.id);
  const said = () => `${printed(update)} for ${printed(facts)}`;
  if (facts === undefined) throw new Error(`an update of an unknown tracker: ${said()}`);
  must(!facts.isOver, () => `an update after the last: ${said()}`);
  const { known, reported, events } = facts;
  if (update.error !== undefined) {
    facts.isOver = true;
    const hasReason = facts.failures >= (input.maxConsecutiveErrors ?? 5) || facts.hasFailedForGood;
    must(hasReason || input.retries > 0, () => `an error without a failure: ${said()}`);
    return;
  }
  const { tracking, newEvents, keys, stopped } = update;
  const shown = (tracking?.events ?? []).map(({ eventId }) => String(eventId));
  const expected = [...new Set(shown)].filter((eventId) => !reported.has(eventId) && !known.has(eventId));
  const got = newEvents.map(({ eventId }) => String(eventId));
  must(got.join() === expected.join(), () => `expected the new events ${expected}: ${said()}`);
  const expectedKeys = got.map((eventId) => buildEventKey({ trackerId: facts.id }, { eventId }));
  must(keys.join() === expectedKeys.join(), () => `wrong keys: ${said()}`);
  for (const eventId of got) reported.add(eventId);
  if (!stopped) return;
  facts.isOver = true;
  must(performance.now() >= facts.stopsAtMs, () => `stopped too early: ${said()}`);
  const missing = events.filter(({ eventId }) => !reported.has(eventId) && !known.has(eventId));
  must(tracking === undefined || missing.length === 0, () => `never reported: ${said()}`);
}

/** Any trackers, failures and ends of `pollMany` give each event once, within the limits, until the tracking stops. */
export const pollingSchedules = scheduleProperty('polling-schedules', 30, schedule, play, {
  limitMs: LIMIT_MS,
  endsTimers: true,
});

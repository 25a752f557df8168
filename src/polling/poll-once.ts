import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { MAX_TIMER_MS, systemClock } from '../common/clock.ts';
import { buildEventKey, canonicalJson } from '../common/event-keys.ts';
import { BACKGROUND_RETRY, completeRetry, type RetryPolicy } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import { endpoints } from '../endpoints.ts';
import {
  NotFoundError,
  RequestValidationError,
  ResponseValidationError,
  ResultsNotReadyError,
  TimeoutError,
} from '../errors.ts';
import type { CheckedData } from '../http/check-response.ts';
import { runCall } from '../http/execute.ts';
import { checkInput, type EndpointResult, prepareRequest } from '../http/prepare.ts';
import { readSentAtMs } from '../http/response-head.ts';
import { getRetryAfterMs, isRateLimited } from '../http/retry.ts';
import { formatError, type LogFields } from '../observability/logger.ts';
import type { RequestOptions, TrackerRequestOptions } from '../options.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { type Tracker, trackerIdentifier } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { type PollOnceOptions, type PollOnceSettings, pollOnceOptions } from './poll-options.ts';

/** The outcome of one poll of a tracker. */
export interface PollUpdate {
  /**
   * The results; undefined if the service responded that there are none yet. A tracker without news can have either, so check
   * `tracking?.events.length` (docs/service.md 2.11).
   */
  readonly tracking: Tracking | undefined;
  /** The events that no earlier update had and whose key is not in `knownKeys`, in the service's order. */
  readonly newEvents: TrackingEvent[];
  /**
   * The key of each new event (`buildEventKey`), the same as in a `WebhookInbox` without an `account`. Store it when you have handled
   * the event, and pass it as one of the `knownKeys` after a restart.
   */
  readonly keys: string[];
  /** Number of the poll, from 1; failed ones count. `pollOnce` always gives 1. */
  readonly poll: number;
  /** True when the service has stopped tracking (`isTracked: false`; docs/service.md 5.1): no later update follows. */
  readonly stopped: boolean;
  /**
   * The tracker's record in the results. If the results lack `isTracked`, `pollOnce` and every second poll of a stream read the
   * record separately (docs/service.md 5.3). If the record says that tracking has stopped, they read the results once more.
   * Undefined if a poll gets no record.
   */
  readonly tracker: Tracker | undefined;
  /**
   * When the service sent the results, or the response that there are none, e.g. `2026-11-21T19:09:00.000Z`. This is the `Date`
   * header, a time in whole seconds. Without this header, it is the time of this machine before the request.
   */
  readonly readAt: string;
}

/** The result of one poll. */
export interface PollResult {
  readonly update: PollUpdate;
  /** The error for a tracker that has stopped without an event; otherwise undefined. */
  readonly notReady: ResultsNotReadyError | undefined;
}

/** The data that the requests of one poll have read. */
interface Reading extends Pick<PollUpdate, 'tracking' | 'tracker' | 'readAt'> {
  readonly createNotReadyError: () => ResultsNotReadyError;
}

/**
 * If a request of a poll fails later than this, or a response other than a 429 asks for a longer wait, the next poll is the
 * retry.
 */
const MAX_WAIT_IN_POLL_MS = 8_000;

/**
 * A poll that waits uses a slot of `concurrency`, in which another tracker could be polled. So only a 429 may cause a long wait: it
 * pauses the endpoint for all trackers.
 */
function mayRetryInPoll(error: unknown, failedAfterMs: number): boolean {
  if (isRateLimited(error)) return true;
  const holdsSlotMs = Math.max(failedAfterMs, getRetryAfterMs(error));
  return !(error instanceof TimeoutError) && holdsSlotMs <= MAX_WAIT_IN_POLL_MS;
}

type PollEndpoint = 'trackers.results' | 'trackers.get';

/** How the requests of polls are sent; all trackers of a stream share it. */
export interface PollRequestSettings {
  readonly config: Config;
  /** The config for the requests. Default: `config`. */
  readonly callConfig?: Config | undefined;
  readonly options: TrackerRequestOptions & { readonly retry: RetryPolicy };
  /** If this number of polls in a row got no `isTracked`, the last one also reads the record. */
  readonly pollsPerRecord: number;
  /** Waits for `maxPerSecond`. */
  readonly takeTurn?: (() => Promise<void>) | undefined;
}

export function createPollRequestSettings(
  config: Config,
  { searchBy, timeoutMs, totalTimeoutMs, headers, retry, priority = 'background' }: PollOnceSettings,
  rest: Omit<PollRequestSettings, 'config' | 'options'>,
): PollRequestSettings {
  const policy = completeRetry(retry, config.retry, BACKGROUND_RETRY);
  return {
    config,
    options: { searchBy, timeoutMs, totalTimeoutMs, headers, retry: policy, priority },
    ...rest,
  };
}

/** The config for the requests of a stream: what they log is `debug`, because the stream itself reports what has failed. */
export function quietCalls(config: Config): Config {
  const { logger } = config;
  return { ...config, logger: { ...logger, warn: logger.debug, info: logger.debug } };
}

/** Refuses an impossible id, because the first poll of a stream would report it only after the interval. */
export function checkTrackerId(config: Config, id: unknown): asserts id is string {
  // The schema that names the field is built for wrong ids only, because building it costs more than the check.
  if (!trackerIdentifier.safeParse(id).success)
    checkInput(config, z.object({ id: trackerIdentifier }), { id }, 'id');
}

/** Polls a tracker, and remembers the events that it has read. */
export class TrackerPoller {
  readonly id: string;
  polls = 0;
  readonly #requestSettings: PollRequestSettings;
  #pollsWithoutIsTracked = 0;
  /** The service has asked not to read the record before this time. */
  #recordWaitsUntil = 0;
  /**
   * Ids, which take less memory than keys; for an event without an id, its JSON. Created with the first event, because most
   * trackers of a long list have no events.
   */
  #seenEvents: Set<string> | undefined;
  /** The keys of `knownKeys` whose events no poll has read yet. */
  readonly #knownKeys: Set<string> | undefined;

  constructor(id: string, knownKeys: Set<string> | undefined, requestSettings: PollRequestSettings) {
    this.id = id;
    this.#knownKeys = knownKeys;
    this.#requestSettings = requestSettings;
  }

  /** @throws the failure of a request, or the signal's own reason */
  async pollOnce(signal: AbortSignal | undefined): Promise<PollResult> {
    this.polls += 1;
    const { tracking, tracker, readAt, createNotReadyError } = await this.#read(signal);
    const { newEvents, keys } = this.#takeNewEvents(tracking);
    const stopped = tracker?.isTracked === false;
    const hasEvents = tracking !== undefined && tracking.events.length > 0;
    const notReady = stopped && !hasEvents ? createNotReadyError() : undefined;
    const update = { tracking, newEvents, keys, poll: this.polls, stopped, tracker, readAt };
    return { update, notReady };
  }

  protected log(level: 'debug' | 'warn', endpoint: PollEndpoint, message: string, fields: LogFields): void {
    const { method, path } = endpoints[endpoint];
    this.#requestSettings.config.logger[level](message, { endpoint, method, path, id: this.id, ...fields });
  }

  /** Reads the results, and the record if they lack `isTracked`. */
  async #read(signal: AbortSignal | undefined): Promise<Reading> {
    const results = await this.readResults(signal);
    this.#pollsWithoutIsTracked = hasIsTracked(results.tracker) ? 0 : this.#pollsWithoutIsTracked + 1;
    const needsRecord = this.#pollsWithoutIsTracked >= this.#requestSettings.pollsPerRecord;
    if (!needsRecord || systemClock.now() < this.#recordWaitsUntil) return results;
    const tracker = await this.#readRecord(signal);
    // Events may have come between the two requests, so read the results once more.
    const last = tracker?.isTracked === false ? await this.#readResultsAgain(signal) : results;
    this.#pollsWithoutIsTracked = 0;
    // The record of the results wins if it has `isTracked`.
    return { ...last, tracker: hasIsTracked(last.tracker) ? last.tracker : (tracker ?? last.tracker) };
  }

  async readResults(signal: AbortSignal | undefined): Promise<Reading> {
    const askedAtMs = systemClock.wallNow();
    const readAt = (headers: Pick<Headers, 'get'>) =>
      new Date(readSentAtMs(headers) ?? askedAtMs).toISOString();
    try {
      const outcome = await this.#call('trackers.results', { signal }, ({ tracker }) => tracker);
      const { data: tracking, createNotReadyError } = outcome;
      const tracker = tracking.tracker ?? undefined;
      return { tracking, tracker, readAt: readAt(outcome.headers), createNotReadyError };
    } catch (error) {
      if (!(error instanceof ResultsNotReadyError)) throw error;
      const createNotReadyError = () => error;
      return { tracking: undefined, tracker: undefined, readAt: readAt(error.headers), createNotReadyError };
    }
  }

  async #readResultsAgain(signal: AbortSignal | undefined): Promise<Reading> {
    await this.#requestSettings.takeTurn?.();
    return await this.readResults(signal);
  }

  /** Returns undefined after a failure that does not fail the whole poll. */
  async #readRecord(signal: AbortSignal | undefined): Promise<Tracker | undefined> {
    const { retry } = this.#requestSettings.options;
    // Do not wait long for the record. A 429 here pauses only this endpoint, so another tracker could be polled meanwhile.
    const maxRetryAfterMs = Math.min(retry.maxRetryAfterMs, MAX_WAIT_IN_POLL_MS);
    try {
      await this.#requestSettings.takeTurn?.();
      const options = { signal, retry: { ...retry, maxRetryAfterMs } };
      return (await this.#call('trackers.get', options, (tracker) => tracker)).data;
    } catch (error) {
      if (signal?.aborted || isPermanent(error) || error instanceof ResponseValidationError) throw error;
      this.#recordWaitsUntil = getWaitUntil(error);
      const message = 'Could not read the record of a tracker; the next poll that needs it tries again';
      this.log('warn', 'trackers.get', message, { reason: formatError(error) });
      return undefined;
    }
  }

  #call<Name extends PollEndpoint>(
    name: Name,
    own: Pick<RequestOptions, 'signal' | 'retry'>,
    getTracker: (data: EndpointResult<Name>) => Tracker | null | undefined,
  ) {
    const { config, callConfig = config, options } = this.#requestSettings;
    const prepare = () => {
      const input = { params: { trackerId: this.id }, query: { searchBy: options.searchBy } };
      const request = prepareRequest(callConfig, name, input);
      return {
        ...request,
        mayRetry: mayRetryInPoll,
        read: (...response: Parameters<typeof request.read>) => {
          const checked = request.read(...response);
          return checked.isUsable ? checkIsTracked(checked, getTracker(checked.data)) : checked;
        },
      };
    };
    return runCall(callConfig, name, { ...options, ...own }, prepare);
  }

  #takeNewEvents(tracking: Tracking | undefined) {
    const { searchBy } = this.#requestSettings.options;
    const polledIds = searchBy === 'clientTrackerId' ? { clientTrackerId: this.id } : { trackerId: this.id };
    const record = tracking?.tracker;
    // With `invalidResponse: 'keep'`, the record may lack its id.
    const ids = typeof record?.trackerId === 'string' ? record : polledIds;
    const unseen = new Map<string, { readonly event: TrackingEvent; readonly key: string }>();
    for (const event of tracking?.events ?? []) {
      const id: unknown = event.eventId;
      const identity = typeof id === 'string' && id !== '' ? id : canonicalJson(event);
      if (this.#seenEvents?.has(identity) || unseen.has(identity)) continue;
      unseen.set(identity, { event, key: buildEventKey(ids, event) });
    }
    // Remember the events only now: if the key of one cannot be built, the poll fails, and the next poll finds all again.
    if (unseen.size > 0) this.#seenEvents ??= new Set();
    for (const identity of unseen.keys()) this.#seenEvents?.add(identity);
    const fresh = [...unseen.values()].filter(({ key }) => !this.#knownKeys?.delete(key));
    return { newEvents: fresh.map(({ event }) => event), keys: fresh.map(({ key }) => key) };
  }
}

export async function pollOnce(config: Config, id: string, options: PollOnceOptions): Promise<PollUpdate> {
  checkTrackerId(config, id);
  const { knownKeys, signal, ...settings } = checkOptions(pollOnceOptions, options, undefined, config);
  // `pollOnce` keeps no state, so it cannot leave the record to a later poll.
  const requestSettings = createPollRequestSettings(config, settings, { pollsPerRecord: 1 });
  const { update } = await new TrackerPoller(id, knownKeys, requestSettings).pollOnce(signal);
  return update;
}

/** True if every later poll would fail, too. A 404 without a code comes from a gateway, so later polls may succeed. */
export function isPermanent(error: unknown): boolean {
  const isUnknownTracker = error instanceof NotFoundError && error.code !== undefined;
  return isUnknownTracker || error instanceof RequestValidationError;
}

/** Returns the time of `systemClock` until which the service asks to wait; it is at most `MAX_TIMER_MS` from now. */
export function getWaitUntil(error: unknown): number {
  return systemClock.now() + Math.min(getRetryAfterMs(error), MAX_TIMER_MS);
}

function hasIsTracked(tracker: Tracker | undefined): boolean {
  return typeof tracker?.isTracked === 'boolean';
}

/** Refuses a wrong `isTracked`, which would keep the polling from ending. A missing or null one is not wrong. */
function checkIsTracked<T>(checked: CheckedData<T>, tracker: Tracker | null | undefined): CheckedData<T> {
  const isTracked: unknown = tracker?.isTracked ?? undefined;
  if (isTracked === undefined || typeof isTracked === 'boolean') return checked;
  const mismatched = checked.mismatched.filter(({ path }) => path.at(-1) === 'isTracked');
  return { isUsable: false, mismatched, total: mismatched.length };
}

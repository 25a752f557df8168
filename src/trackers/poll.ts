// Specification: service.md 1, 3, 4

import { ResultsNotReadyError } from '../api-errors.ts';
import {
  checkCount,
  checkDelayMs,
  checkKnownOptions,
  checkOneOf,
  refuseOption,
} from '../common/option-checks.ts';
import { MAX_TIMER_MS } from '../common/timing.ts';
import { resolveCallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import { TimeoutError } from '../errors.ts';
import type { Caller } from '../http/call.ts';
import type { TrackerRequestOptions } from '../options.ts';
import { type SearchBy, searchBySchema } from '../schemas/identifier.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { PollEngine, type PollSettings } from './poll-engine.ts';
import { checkTrackerId, type PollContext, type PollUpdate } from './polled-tracker.ts';
import { PullStream } from './streams.ts';

/** Asked for less, a service that updates every few minutes only gets busier. */
const SHORTEST_INTERVAL_MS = 1000;
const DEFAULT_INTERVAL_MS = 15 * 60_000;
const DEFAULT_MAX_CONSECUTIVE_ERRORS = 5;

/** Options of `trackers.poll` and `trackers.waitUntilStopped`; those of a request hold for each poll. */
export interface PollOptions extends Omit<TrackerRequestOptions, 'priority'> {
  /**
   * Time from one poll to the next, in milliseconds, or a function that is asked after every poll; 1,000 or more.
   * Default 900,000 (15 minutes).
   * @example ({ tracking }) => (tracking?.shipment?.statusMilestone === 'out_for_delivery' ? 300_000 : 3_600_000)
   */
  readonly intervalMs?: number | ((context: PollContext) => number) | undefined;
  /**
   * Time until the first poll, in milliseconds. Default: the interval, since a new tracker has no results yet
   * (service.md 1).
   */
  readonly initialDelayMs?: number | undefined;
  /**
   * Longest time to poll, in milliseconds; it ends at once when the next poll would come later. Default: no bound.
   */
  readonly maxDurationMs?: number | undefined;
  /**
   * Failed polls in a row, after the retries of each, that end it with an error. A refused key, plan or quota ends it at
   * once while no poll has succeeded yet. Default 5.
   */
  readonly maxConsecutiveErrors?: number | undefined;
  /**
   * Ends it after the update for which this is true.
   * @example (tracking) => tracking.shipment?.statusMilestone === 'delivered'
   */
  readonly until?: ((tracking: Tracking) => boolean) | undefined;
}

// Typed against the options, so an option without an entry here does not compile.
export const POLL_OPTIONS = {
  intervalMs: true,
  initialDelayMs: true,
  maxDurationMs: true,
  maxConsecutiveErrors: true,
  until: true,
  searchBy: true,
  signal: true,
  timeoutMs: true,
  totalTimeoutMs: true,
  retry: true,
  headers: true,
} satisfies Record<keyof PollOptions, true>;

function checkIntervalMs(name: string, value: unknown): number {
  if (typeof value === 'number' && value >= SHORTEST_INTERVAL_MS && value <= MAX_TIMER_MS) return value;
  return refuseOption(
    name,
    `a number of milliseconds from ${SHORTEST_INTERVAL_MS} to ${MAX_TIMER_MS}`,
    value,
  );
}

/** An interval function that checks what the caller's own returns. */
function intervalFunction(value: unknown): PollSettings['intervalMs'] {
  if (typeof value === 'function') return (context) => checkIntervalMs('intervalMs()', value(context));
  const intervalMs = checkIntervalMs('intervalMs', value);
  return () => intervalMs;
}

function checkDurationMs(name: string, value: unknown): number {
  return typeof value === 'number' && value > 0
    ? value
    : refuseOption(name, 'a number of milliseconds above 0', value);
}

/**
 * Checks and completes the options of polls.
 *
 * @throws ConfigurationError naming the option that makes no sense
 */
export function resolvePollOptions(
  config: Config,
  options: PollOptions,
  known: Readonly<Record<string, true>> = POLL_OPTIONS,
): PollSettings {
  checkKnownOptions('options', options, Object.keys(known));
  const { intervalMs = DEFAULT_INTERVAL_MS, initialDelayMs, maxDurationMs, maxConsecutiveErrors } = options;
  const { until = () => false, searchBy, signal, timeoutMs, totalTimeoutMs, retry, headers } = options;
  if (typeof until !== 'function') refuseOption('until', 'a function', until);
  if (searchBy !== undefined) checkOneOf<SearchBy>('searchBy', searchBy, searchBySchema.options);
  resolveCallOptions(config, { signal, timeoutMs, totalTimeoutMs, retry, headers });
  return {
    intervalMs: intervalFunction(intervalMs),
    initialDelayMs: initialDelayMs === undefined ? undefined : checkDelayMs('initialDelayMs', initialDelayMs),
    maxDurationMs:
      maxDurationMs === undefined
        ? Number.POSITIVE_INFINITY
        : checkDurationMs('maxDurationMs', maxDurationMs),
    maxConsecutiveErrors: checkCount(
      'maxConsecutiveErrors',
      maxConsecutiveErrors ?? DEFAULT_MAX_CONSECUTIVE_ERRORS,
      1,
      true,
    ),
    until,
    request: { searchBy, timeoutMs, totalTimeoutMs, retry, headers, priority: 'background' },
    concurrency: 1,
    canGrow: false,
  };
}

/** One tracker polled for as long as somebody reads; what `trackers.poll` returns. */
export class TrackerPoll extends PullStream<PollUpdate> {
  readonly #id: string;
  readonly #engine: PollEngine;
  /** Why the last update had no results; undefined when it had. */
  notReady: ResultsNotReadyError | undefined;

  constructor(caller: Caller, id: string, options: PollOptions) {
    checkTrackerId(id);
    const settings = resolvePollOptions(caller.config, options);
    super(options.signal);
    this.#id = id;
    this.#engine = new PollEngine(caller, settings);
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollUpdate, void, undefined> {
    for await (const result of this.#engine.run([this.#id], signal)) {
      if (result.failure !== undefined) throw result.failure.error;
      this.notReady = result.notReady;
      yield result.update;
    }
  }
}

/** What `trackers.waitUntilStopped` does; see there. */
export async function waitUntilStopped(caller: Caller, id: string, options: PollOptions): Promise<Tracking> {
  const { until, maxDurationMs = Number.POSITIVE_INFINITY } = options;
  let last: Tracking | undefined;
  const noteLast = (tracking: Tracking) => {
    const isEnough = until?.(tracking) ?? false;
    if (isEnough) last = tracking;
    return isEnough;
  };
  // An `until` that is no function goes on, to be rejected like any option that makes no sense.
  const own = typeof until === 'function' ? { ...options, until: noteLast } : options;
  const polls = new TrackerPoll(caller, id, own);
  for await (const { tracking, stopped, tracker } of polls) {
    if (!stopped) continue;
    last = tracking;
    const { notReady } = polls;
    if (notReady === undefined || tracker === undefined) continue;
    const { headers, body } = notReady;
    const message = `The service has stopped tracking \`${id}\`, and there are no results of it`;
    throw new ResultsNotReadyError(message, { ...notReady, headers, body, tracker }, { cause: notReady });
  }
  if (last !== undefined) return last;
  throw new TimeoutError(
    `Ran out of \`maxDurationMs\` (${maxDurationMs} ms) while the service was still tracking`,
    { phase: 'backoff', timeoutMs: maxDurationMs },
  );
}

// Specification: service.md 1, 3, 4

import { z } from 'zod';
import { MAX_TIMER_MS } from '../common/clock.ts';
import {
  checkOptions,
  choiceOption,
  countOption,
  delayOption,
  functionOption,
  type OptionShape,
  option,
} from '../common/option-checks.ts';
import { CALL_SHAPE } from '../config/call-options.ts';
import { ResultsNotReadyError, TimeoutError } from '../errors.ts';
import type { CallContext } from '../http/execute.ts';
import type { TrackerRequestOptions } from '../options.ts';
import { searchBySchema } from '../schemas/identifier.ts';
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
   * Time until the first poll, in milliseconds. Default: the interval, since a new tracker has no results yet.
   */
  readonly initialDelayMs?: number | undefined;
  /** Longest time to poll, in milliseconds; it ends at once when the next poll would come later. Default: no bound. */
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

const intervalOption = option<number>(
  `a number of milliseconds from ${SHORTEST_INTERVAL_MS} to ${MAX_TIMER_MS}`,
  (value) => typeof value === 'number' && value >= SHORTEST_INTERVAL_MS && value <= MAX_TIMER_MS,
);

const { priority: _priority, ...REQUEST_SHAPE } = CALL_SHAPE;

export const POLL_SHAPE = {
  // Checked below: what a function gives is checked after every poll.
  intervalMs: z.custom<PollOptions['intervalMs']>().optional(),
  initialDelayMs: delayOption.optional(),
  maxDurationMs: option<number>(
    'a number of milliseconds above 0',
    (value) => typeof value === 'number' && value > 0,
  ).default(Number.POSITIVE_INFINITY),
  maxConsecutiveErrors: countOption(1, true).default(DEFAULT_MAX_CONSECUTIVE_ERRORS),
  until: functionOption<NonNullable<PollOptions['until']>>().default(() => () => false),
  searchBy: choiceOption(searchBySchema.options).optional(),
  ...REQUEST_SHAPE,
} satisfies OptionShape<PollOptions>;

const pollOptions = z.strictObject(POLL_SHAPE);

function intervalFunction(
  given: PollOptions['intervalMs'] = DEFAULT_INTERVAL_MS,
): PollSettings['intervalMs'] {
  if (typeof given === 'function')
    return (context) => checkOptions(intervalOption, given(context), 'intervalMs()');
  const intervalMs = checkOptions(intervalOption, given, 'intervalMs');
  return () => intervalMs;
}

/** How one tracker is polled by options that were checked. */
export function pollSettings(options: z.output<typeof pollOptions>): PollSettings {
  const { initialDelayMs, maxDurationMs, maxConsecutiveErrors, until } = options;
  const { searchBy, timeoutMs, totalTimeoutMs, retry, headers } = options;
  return {
    intervalMs: intervalFunction(options.intervalMs),
    initialDelayMs,
    maxDurationMs,
    maxConsecutiveErrors,
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

  constructor(context: CallContext, id: string, options: PollOptions) {
    checkTrackerId(id);
    const settings = pollSettings(checkOptions(pollOptions, options));
    super(options.signal);
    this.#id = id;
    this.#engine = new PollEngine(context, settings);
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
export async function waitUntilStopped(
  context: CallContext,
  id: string,
  options: PollOptions,
): Promise<Tracking> {
  const { until, maxDurationMs = Number.POSITIVE_INFINITY } = options;
  let last: Tracking | undefined;
  let own = options;
  // An `until` that is no function goes on, to be rejected like any option that makes no sense.
  if (typeof until === 'function') {
    const noteLast = (tracking: Tracking) => {
      const isEnough = until(tracking);
      if (isEnough) last = tracking;
      return isEnough;
    };
    own = { ...options, until: noteLast };
  }
  const polls = new TrackerPoll(context, id, own);
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

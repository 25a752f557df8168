// Specification: service.md 1, 3, 4, 8

import { z } from 'zod';
import { MAX_TIMER_MS } from '../common/clock.ts';
import { checkOptions, countOption, type OptionShape, option } from '../common/option-checks.ts';
import { isTrackingError, TrackingError } from '../errors.ts';
import type { CallContext } from '../http/execute.ts';
import { POLL_SHAPE, type PollOptions, pollSettings } from './poll.ts';
import { PollEngine } from './poll-engine.ts';
import type { PollUpdate } from './polled-tracker.ts';
import { checkIterable, PullStream } from './streams.ts';

const DEFAULT_CONCURRENCY = 10;
/** Slower than this, the time between two polls is longer than a timer can hold. */
const SMALLEST_RATE = 1000 / MAX_TIMER_MS;

/** Options of `trackers.pollMany`: those of `trackers.poll` hold for each tracker. */
export interface PollManyOptions extends PollOptions {
  /**
   * A budget of requests per second, evenly spread, for all trackers together; above 0. Default: none, so that only the
   * limiter bounds them.
   */
  readonly maxPerSecond?: number | undefined;
  /** Most polls that are under way or wait to be read, 1 or more. Default 10. */
  readonly concurrency?: number | undefined;
  /** Longest time to poll, in milliseconds, for all trackers together. Default: no bound. */
  readonly maxDurationMs?: number | undefined;
}

/** An update of one of many trackers. */
export interface TrackerPollUpdate extends PollUpdate {
  /** The id as it was given. */
  readonly id: string;
  /** Only in a failure. */
  readonly error?: undefined;
}

/** One of many trackers failed, and is polled no more; what an update has it has not. */
export interface TrackerPollFailure extends Readonly<Partial<Record<keyof PollUpdate, undefined>>> {
  /** The id as it was given. */
  readonly id: string;
  /** Why: what `trackers.poll` would have thrown. */
  readonly error: TrackingError;
}

/** What `trackers.pollMany` yields; only a failure has an `error`. */
export type PollManyUpdate = TrackerPollUpdate | TrackerPollFailure;

/** Any number of ids, known now or later. */
export type TrackerIds = Iterable<string> | AsyncIterable<string>;

const pollManyOptions = z.strictObject({
  ...POLL_SHAPE,
  maxPerSecond: option<number>(
    'a finite number above 0',
    (value) => Number.isFinite(value) && Number(value) >= SMALLEST_RATE,
  ).optional(),
  concurrency: countOption(1).default(DEFAULT_CONCURRENCY),
} satisfies OptionShape<PollManyOptions>);

/** Many trackers polled as one stream; what `trackers.pollMany` returns. */
export class TrackerPolls extends PullStream<PollManyUpdate> {
  readonly #ids: TrackerIds;
  readonly #engine: PollEngine;

  /** @internal */
  constructor(context: CallContext, ids: TrackerIds, options: PollManyOptions) {
    checkIterable('ids', ids);
    const given = checkOptions(pollManyOptions, options);
    const { maxPerSecond, concurrency } = given;
    const settings = { ...pollSettings(given), maxPerSecond, concurrency, canGrow: true };
    super(options.signal);
    this.#ids = ids;
    this.#engine = new PollEngine(context, settings);
  }

  /** How many trackers are polled. */
  get size(): number {
    return this.#engine.size;
  }

  /**
   * Polls one more tracker, in O(log n); its first poll comes after `initialDelayMs`.
   *
   * @param id - its `trackerId`, or your `clientTrackerId` with `searchBy`
   * @returns false when it is polled already
   * @throws RequestValidationError for an id that can't be one; TrackingError when the stream has ended
   */
  add(id: string): boolean {
    if (this.hasEnded)
      throw new TrackingError('Expected a stream that goes on to add an id to, got one that has ended');
    return this.#engine.add(id);
  }

  /**
   * Polls a tracker no more, in O(log n); no update of it comes after this, also when its poll is under way.
   *
   * @param id - the id as it was given
   * @returns false when it was not polled
   */
  delete(id: string): boolean {
    return this.#engine.delete(id);
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollManyUpdate, void, undefined> {
    for await (const { id, update, failure } of this.#engine.run(this.#ids, signal)) {
      if (update !== undefined) yield { id, ...update };
      else yield { id, error: toTrackingError(id, failure.error) };
    }
  }
}

function toTrackingError(id: string, cause: unknown): TrackingError {
  return isTrackingError(cause) ? cause : new TrackingError(`Polling \`${id}\` failed`, { cause });
}

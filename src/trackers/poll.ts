import { checkOptions } from '../common/option-checks.ts';
import {
  type CallSite,
  pointToCallSite,
  ResultsNotReadyError,
  TimeoutError,
  type TrackingError,
} from '../errors.ts';
import type { CallContext } from '../http/execute.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { type PollOutcome, TrackerPolls } from './poll-many.ts';
import { type PollOptions, pollOptions } from './poll-options.ts';
import { PolledTracker, type PollUpdate } from './polled-tracker.ts';
import { PullStream } from './streams.ts';

/** The stream of `trackers.poll`: a stream of many trackers that has one. */
export class TrackerPoll extends PullStream<PollUpdate> {
  /** The outcome that ended the poll; undefined while it goes on, and when its time ran out. */
  last: PollOutcome | undefined;
  readonly #polls: TrackerPolls;
  readonly #callSite: CallSite;

  constructor(context: CallContext, id: string, options: PollOptions, callSite: CallSite) {
    // Throws for an id that cannot be one, before anybody reads.
    new PolledTracker(id);
    const settings = { ...checkOptions(pollOptions, options), concurrency: 1 };
    super(options.signal);
    this.#polls = new TrackerPolls(context, [id], settings, callSite);
    this.#callSite = callSite;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollUpdate, void, undefined> {
    for await (const outcome of this.#polls.run(signal)) {
      if (outcome.isLast) this.last = outcome;
      if (outcome.update !== undefined) yield outcome.update;
      else {
        pointToCallSite(outcome.error, this.#callSite);
        throw outcome.error;
      }
    }
  }
}

/** Does what `trackers.waitUntilStopped` promises. */
export async function waitUntilStopped(
  context: CallContext,
  id: string,
  options: PollOptions,
  callSite: CallSite,
): Promise<Tracking> {
  const polls = new TrackerPoll(context, id, options, callSite);
  while (!(await polls.next()).done);
  const { update, notReady } = polls.last ?? {};
  if (update?.tracking !== undefined) return update.tracking;
  const { maxDurationMs = Number.POSITIVE_INFINITY } = options;
  let error: TrackingError = new TimeoutError(
    `Ran out of \`maxDurationMs\` (${maxDurationMs} ms) while the service was still tracking`,
    { phase: 'backoff', timeoutMs: maxDurationMs },
  );
  if (update?.tracker !== undefined && notReady !== undefined) {
    const { headers, body } = notReady;
    const message = `The service has stopped tracking \`${id}\`, and there are no results of it`;
    const details = { ...notReady, headers, body, tracker: update.tracker };
    error = new ResultsNotReadyError(message, details, { cause: notReady });
  }
  pointToCallSite(error, callSite);
  throw error;
}

import { checkOptions } from '../common/option-checks.ts';
import { ResultsNotReadyError, TimeoutError } from '../errors.ts';
import type { CallContext } from '../http/execute.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { type PollResult, TrackerPolls } from './poll-many.ts';
import { type PollOptions, pollOptions } from './poll-options.ts';
import { PolledTracker, type PollUpdate } from './polled-tracker.ts';
import { PullStream } from './streams.ts';

/** The stream of `trackers.poll`: a stream of many trackers that has one. */
export class TrackerPoll extends PullStream<PollUpdate> {
  /** The update after which the polling ended; undefined while it goes on, and when its time ran out. */
  last: PollResult | undefined;
  readonly #polls: TrackerPolls;

  constructor(context: CallContext, id: string, options: PollOptions) {
    // Throws for an id that cannot be one, before anybody reads.
    new PolledTracker(id);
    const settings = checkOptions(pollOptions, options);
    super(options.signal);
    this.#polls = new TrackerPolls(context, [id], { ...settings, concurrency: 1 });
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollUpdate, void, undefined> {
    for await (const result of this.#polls.run(signal)) {
      if (result.failure !== undefined) throw result.failure.error;
      if (result.isLast) this.last = result;
      yield result.update;
    }
  }
}

/** Does what `trackers.waitUntilStopped` promises. */
export async function waitUntilStopped(
  context: CallContext,
  id: string,
  options: PollOptions,
): Promise<Tracking> {
  const polls = new TrackerPoll(context, id, options);
  while (!(await polls.next()).done);
  const { update, notReady } = polls.last ?? {};
  if (update?.tracking !== undefined) return update.tracking;
  if (update?.tracker !== undefined && notReady !== undefined) {
    const { headers, body } = notReady;
    const message = `The service has stopped tracking \`${id}\`, and there are no results of it`;
    const details = { ...notReady, headers, body, tracker: update.tracker };
    throw new ResultsNotReadyError(message, details, { cause: notReady });
  }
  const { maxDurationMs = Number.POSITIVE_INFINITY } = options;
  throw new TimeoutError(
    `Ran out of \`maxDurationMs\` (${maxDurationMs} ms) while the service was still tracking`,
    { phase: 'backoff', timeoutMs: maxDurationMs },
  );
}

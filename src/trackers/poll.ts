import { linkedController, MAX_TIMER_MS, systemClock } from '../common/timing.ts';
import { TimeoutError } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { contextOf, emptyMemory, isLast, pollOnce } from './poll-once.ts';
import {
  checkTrackerId,
  type PollOptions,
  type PollSettings,
  type PollUpdate,
  resolvePollOptions,
} from './poll-options.ts';
import { nextPollAt, PollClock } from './poll-schedule.ts';
import { PullStream } from './pull-stream.ts';

/** Polls one tracker for as long as somebody reads. */
class TrackerPoll extends PullStream<PollUpdate> {
  readonly #caller: Caller;
  readonly #id: string;
  readonly #settings: PollSettings;
  readonly #clock = new PollClock();

  constructor(caller: Caller, id: string, settings: PollSettings) {
    super(settings.signal);
    this.#caller = caller;
    this.#id = id;
    this.#settings = settings;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<PollUpdate, void, undefined> {
    const settings = this.#settings;
    const clock = this.#clock;
    const memory = emptyMemory(this.#id);
    const endsAt = clock.now() + settings.maxDurationMs;
    let dueAt = clock.now() + (settings.initialDelayMs ?? settings.intervalMs(contextOf(memory)));
    for (;;) {
      if (dueAt >= endsAt) return;
      await clock.sleepUntil(dueAt, signal);
      const startedAt = clock.now();
      if (startedAt >= endsAt) return;
      const result = await withDeadline(endsAt - startedAt, signal, (pollSignal) =>
        pollOnce(this.#caller, memory, settings, pollSignal),
      );
      if (result === OUT_OF_TIME) return;
      if (result !== undefined && isLast(result, settings)) {
        yield result;
        return;
      }
      dueAt = nextPollAt(
        { dueAt, startedAt, endedAt: clock.now() },
        settings.intervalMs(contextOf(memory, result)),
      );
      if (result !== undefined) yield result;
    }
  }
}

const OUT_OF_TIME = 'out of time';

/** Runs a poll with a signal that also aborts after `remainingMs`. */
async function withDeadline<T>(
  remainingMs: number,
  signal: AbortSignal,
  poll: (signal: AbortSignal) => Promise<T>,
): Promise<T | typeof OUT_OF_TIME> {
  if (remainingMs > MAX_TIMER_MS) return await poll(signal);
  const { controller, takeBack } = linkedController(signal);
  const timer = systemClock.setTimeout(
    () => controller.abort(new Error(OUT_OF_TIME)),
    Math.ceil(remainingMs),
  );
  try {
    return await poll(controller.signal);
  } catch (error) {
    if (controller.signal.aborted && !signal.aborted) return OUT_OF_TIME;
    throw error;
  } finally {
    systemClock.clearTimeout(timer);
    takeBack();
  }
}

/** What `trackers.poll` does; see there. */
export function pollTracker(caller: Caller, id: string, options: PollOptions): TrackerPoll {
  return new TrackerPoll(caller, checkTrackerId(id), resolvePollOptions(caller.config, options));
}

/** What `trackers.waitUntilStopped` does; see there. */
export async function waitUntilStopped(caller: Caller, id: string, options: PollOptions): Promise<Tracking> {
  const { until } = options;
  let last: Tracking | undefined;
  const noted = (tracking: Tracking) => {
    const isEnough = until?.(tracking) ?? false;
    if (isEnough) last = tracking;
    return isEnough;
  };
  const polls = pollTracker(caller, id, typeof until === 'function' ? { ...options, until: noted } : options);
  for await (const { tracking, stopped } of polls) {
    if (stopped) last = tracking;
  }
  if (last !== undefined) return last;
  const { maxDurationMs = Number.POSITIVE_INFINITY } = options;
  throw new TimeoutError(
    `Ran out of \`maxDurationMs\` (${maxDurationMs} ms) while the service was still tracking`,
    { phase: 'backoff', timeoutMs: maxDurationMs },
  );
}

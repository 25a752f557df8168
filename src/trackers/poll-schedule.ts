import { sleep, systemClock } from '../common/timing.ts';

/** A start that is later than this was held up by something other than the timer. */
const LONGEST_JITTER_MS = 1000;
const LONGEST_JITTER_SHARE = 0.1;

/** One poll that is over, in milliseconds of one clock. */
export interface FinishedPoll {
  readonly dueAt: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

/**
 * When the next poll of the same tracker is due.
 *
 * Counted from when this poll was due, so small delays do not add up. A poll that was held up (by a slow reader, or a
 * process that slept) counts from its real start, so the next one does not follow on its heels. Times that went by
 * while the service was answering are left out.
 */
export function nextPollAt({ dueAt, startedAt, endedAt }: FinishedPoll, intervalMs: number): number {
  const isHeldUp = startedAt - dueAt > Math.min(LONGEST_JITTER_MS, intervalMs * LONGEST_JITTER_SHARE);
  const countedFrom = isHeldUp ? startedAt : dueAt;
  const intervals = Math.max(1, Math.ceil((endedAt - countedFrom) / intervalMs));
  return countedFrom + intervals * intervalMs;
}

/**
 * The monotonic clock, which never says less than a timer that fired was set for.
 *
 * Timers fire up to a millisecond early, and some test runners fake timers without faking this clock.
 */
export class PollClock {
  #reachedAt = Number.NEGATIVE_INFINITY;

  now(): number {
    return Math.max(systemClock.now(), this.#reachedAt);
  }

  /** A timer that was set for this moment fired. */
  reach(at: number): void {
    this.#reachedAt = Math.max(this.#reachedAt, at);
  }

  /**
   * Waits for a moment at most 2^31 - 1 milliseconds away.
   *
   * @throws the signal's own reason on abort
   */
  async sleepUntil(at: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const delayMs = Math.ceil(at - this.now());
    if (delayMs <= 0) return;
    await sleep(delayMs, signal);
    this.reach(at);
  }
}

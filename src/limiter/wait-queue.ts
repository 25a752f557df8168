import type { Priority } from './limiter.ts';

/** While a background call waits, at most this many interactive calls go before it. */
export const LONGEST_INTERACTIVE_RUN = 19;

/** A call that may wait; the queue links it to its neighbours. */
export interface Waiter {
  readonly priority: Priority;
  /** Monotonic time after which it no longer wants a token; Infinity for never. */
  readonly deadline: number;
  /** It does not sit out a longer pause, in milliseconds; undefined for any. */
  readonly maxPauseMs: number | undefined;
  previous: this | undefined;
  next: this | undefined;
}

/** Whether a pause is longer than somebody would sit out. */
export function isTooLong(pausedForMs: number, { maxPauseMs }: Pick<Waiter, 'maxPauseMs'>): boolean {
  return maxPauseMs !== undefined && pausedForMs > maxPauseMs;
}

/** First in, first out, with removal from the middle in constant time. */
class Lane<W extends Waiter> {
  first: W | undefined;
  #last: W | undefined;
  size = 0;

  append(waiter: W): void {
    waiter.previous = this.#last;
    if (this.#last) this.#last.next = waiter;
    else this.first = waiter;
    this.#last = waiter;
    this.size += 1;
  }

  remove(waiter: W): void {
    if (waiter.previous) waiter.previous.next = waiter.next;
    else this.first = waiter.next;
    if (waiter.next) waiter.next.previous = waiter.previous;
    else this.#last = waiter.previous;
    waiter.previous = undefined;
    waiter.next = undefined;
    this.size -= 1;
  }
}

/** The two lanes of one bucket, and the rule of whose turn it is. */
export class WaitQueue<W extends Waiter> {
  readonly #lanes = { interactive: new Lane<W>(), background: new Lane<W>() };
  #interactiveRun = 0;
  #earliestDeadline = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#lanes.interactive.size + this.#lanes.background.size;
  }

  /**
   * No waiter's deadline is earlier. It may be that of a waiter who has left: keeping it exact would cost
   * more than the one needless look.
   */
  get earliestDeadline(): number {
    return this.#earliestDeadline;
  }

  append(waiter: W): void {
    this.#lanes[waiter.priority].append(waiter);
    this.#earliestDeadline = Math.min(this.#earliestDeadline, waiter.deadline);
  }

  /** Gives up a place; the others keep theirs. */
  remove(waiter: W): void {
    this.#lanes[waiter.priority].remove(waiter);
    if (this.size === 0) this.#earliestDeadline = Number.POSITIVE_INFINITY;
  }

  /**
   * Whose turn it is, if anybody's.
   *
   * @param free - tokens that are in the bucket
   * @param reserve - how many of them background calls leave there
   */
  next(free: number, reserve: number): W | undefined {
    if (free <= 0) return undefined;
    const background = this.#lanes.background.first;
    if (background && this.#interactiveRun >= LONGEST_INTERACTIVE_RUN) return background;
    return this.#lanes.interactive.first ?? (free > reserve ? background : undefined);
  }

  /** Removes a waiter because it got its token. */
  take(waiter: W): void {
    this.remove(waiter);
    const passedOver = waiter.priority === 'interactive' && this.#lanes.background.size > 0;
    this.#interactiveRun = passedOver ? this.#interactiveRun + 1 : 0;
  }

  /** Removes and returns everybody whose deadline has come, in no order that matters. */
  takeExpired(now: number): W[] {
    return this.#earliestDeadline > now ? [] : this.#takeWhere((waiter) => waiter.deadline <= now);
  }

  /** Removes and returns everybody who would not sit a pause out; looks at all. */
  takeImpatient(pausedForMs: number): W[] {
    return this.#takeWhere((waiter) => isTooLong(pausedForMs, waiter));
  }

  #takeWhere(holds: (waiter: W) => boolean): W[] {
    const taken: W[] = [];
    let earliest = Number.POSITIVE_INFINITY;
    for (const lane of [this.#lanes.interactive, this.#lanes.background]) {
      let waiter = lane.first;
      while (waiter) {
        const following: W | undefined = waiter.next;
        if (holds(waiter)) {
          lane.remove(waiter);
          taken.push(waiter);
        } else {
          earliest = Math.min(earliest, waiter.deadline);
        }
        waiter = following;
      }
    }
    this.#earliestDeadline = earliest;
    return taken;
  }
}

import { systemClock } from '../common/clock.ts';

/** A start that is later than this was held up by something other than the timer. */
const LONGEST_JITTER_MS = 1000;
const LONGEST_JITTER_SHARE = 0.1;

/**
 * When the next poll of the same tracker is due.
 *
 * Counted from when this poll was due, so small delays do not add up. A poll that was held up (by a slow reader, or a
 * process that slept) counts from its real start, so the next one does not follow on its heels. Times that went by
 * while the service was responding are left out.
 */
export function nextPollAt(
  poll: { readonly dueAt: number; readonly startedAt: number; readonly endedAt: number },
  intervalMs: number,
): number {
  const { dueAt, startedAt, endedAt } = poll;
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
}

/** Something that is due at some time. Only the heap writes `place` and `turn`. */
export interface Due {
  dueAt: number;
  /** Index in the heap; outside it, it says nothing. */
  place: number;
  /** Who came first among those that are due at the same time. */
  turn: number;
}

function isBefore(one: Due, other: Due): boolean {
  return one.dueAt < other.dueAt || (one.dueAt === other.dueAt && one.turn < other.turn);
}

/** Whoever is due first comes first, in O(log n); also removes from the middle. */
export class DueHeap<Item extends Due> {
  readonly #items: Item[] = [];
  #turns = 0;

  get first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    this.#turns += 1;
    item.turn = this.#turns;
    this.#rise(item, this.#items.length);
  }

  /** Takes an item out; does nothing when it is not in. */
  remove(item: Item): void {
    const { place } = item;
    if (this.#items[place] !== item) return;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    // The item from the end may belong above or below the gap.
    this.#rise(last, place);
    this.#sink(last);
  }

  clear(): void {
    this.#items.length = 0;
  }

  #put(item: Item, place: number): void {
    this.#items[place] = item;
    item.place = place;
  }

  #rise(item: Item, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above];
      if (parent === undefined || !isBefore(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #sink(item: Item): void {
    let { place } = item;
    for (;;) {
      const left = this.#items[2 * place + 1];
      const right = this.#items[2 * place + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, item)) break;
      const below = child.place;
      this.#put(child, place);
      place = below;
    }
    this.#put(item, place);
  }
}

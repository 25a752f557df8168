import type { Clock } from '../../common/timing.ts';
import type { AbortGroups } from '../../limiter/abort-groups.ts';
import type { Priority, Ticket } from '../../limiter/limiter.ts';
import { LongPauseError } from '../../limiter/long-pause-error.ts';
import { queueFullError, queueTimeoutError } from '../../limiter/queue-errors.ts';
import { type Waiter, WaitQueue } from '../../limiter/wait-queue.ts';

/** What a call wants of the queue. */
export interface WaitOptions {
  readonly priority: Priority;
  readonly maxWaitMs: number | undefined;
  readonly maxPauseMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (ticket: Ticket) => void;
  readonly reject: (reason: unknown) => void;
}

/** One call that waits for a token of a bucket that processes share. */
export interface QueuedCall extends WaitOptions, Waiter {
  readonly owner: { giveUp(call: QueuedCall, reason: unknown): void };
  isWaiting: boolean;
}

/** The calls of this process that wait for one bucket, first in, first out, by priority. */
export class CallQueue {
  readonly #name: string;
  readonly #maxQueue: number;
  readonly #clock: Clock;
  readonly #aborts: AbortGroups<QueuedCall>;
  readonly #queue = new WaitQueue<QueuedCall>();
  #interactive = 0;
  /** Calls for which Redis has not been asked yet, and those for which it has; one of either may be able to go at once. */
  #unasked: QueuedCall[] = [];
  #asked: QueuedCall[] = [];

  constructor(options: {
    name: string;
    maxQueue: number;
    clock: Clock;
    aborts: AbortGroups<QueuedCall>;
  }) {
    this.#name = options.name;
    this.#maxQueue = options.maxQueue;
    this.#clock = options.clock;
    this.#aborts = options.aborts;
  }

  get size(): number {
    return this.#queue.size;
  }

  get interactive(): number {
    return this.#interactive;
  }

  get earliestDeadline(): number {
    return this.#queue.earliestDeadline;
  }

  /**
   * Lets a call wait, or rejects it when too many do.
   *
   * @param mustWait - false while it is not known whether the call can go at once; see `rejectExcess`
   */
  append(owner: QueuedCall['owner'], options: WaitOptions, mustWait: boolean): void {
    if (mustWait && this.size >= this.#maxQueue) {
      options.reject(queueFullError(this.#name, this.#maxQueue));
      return;
    }
    const { maxWaitMs, priority } = options;
    const deadline = maxWaitMs === undefined ? Number.POSITIVE_INFINITY : this.#clock.now() + maxWaitMs;
    const call = { ...options, owner, deadline, isWaiting: true, previous: undefined, next: undefined };
    if (call.signal) this.#aborts.add(call.signal, call);
    if (priority === 'interactive') this.#interactive += 1;
    this.#queue.append(call);
    if (!mustWait && this.#maxQueue !== Number.POSITIVE_INFINITY) this.#unasked.push(call);
  }

  /** Redis is being asked for every call that waits now. */
  noteAsked(): void {
    this.#asked.push(...this.#unasked.splice(0));
  }

  /** Rejects the latest calls that turned out to have to wait, as far as they are too many. */
  rejectExcess(): void {
    for (const call of this.#asked.splice(0).reverse()) {
      if (call.isWaiting && this.size > this.#maxQueue)
        this.remove(call, queueFullError(this.#name, this.#maxQueue));
    }
  }

  /** The call whose turn it is, out of the queue; undefined when none waits. */
  take(): QueuedCall | undefined {
    const call = this.#queue.next(1, 0);
    if (!call) return undefined;
    this.#queue.take(call);
    this.#left(call);
    return call;
  }

  /** Takes a call out that gave up, and rejects it. */
  remove(call: QueuedCall, reason: unknown): void {
    this.#queue.remove(call);
    this.#left(call);
    call.reject(reason);
  }

  /** Rejects every call whose time is over, and tells how many there were. */
  expire(now: number): number {
    const expired = this.#queue.takeExpired(now);
    for (const call of expired) {
      this.#left(call);
      call.reject(queueTimeoutError(this.#name, call.maxWaitMs ?? 0));
    }
    return expired.length;
  }

  /** Rejects every call that would not sit a pause out. */
  refuseImpatient(pausedForMs: number): void {
    for (const call of this.#queue.takeImpatient(pausedForMs)) {
      this.#left(call);
      call.reject(new LongPauseError(pausedForMs));
    }
  }

  rejectAll(reasonOf: () => unknown): void {
    for (let call = this.take(); call; call = this.take()) call.reject(reasonOf());
  }

  #left(call: QueuedCall): void {
    call.isWaiting = false;
    if (call.priority === 'interactive') this.#interactive -= 1;
    if (call.signal) this.#aborts.remove(call.signal, call);
  }
}

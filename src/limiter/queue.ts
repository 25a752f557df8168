import { onAbort } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';
import { QueueFullError } from '../errors.ts';
import { type AcquireOptions, type BucketSnapshot, LongPauseError, type Permit } from './limiter.ts';

const MAX_INTERACTIVE_BEFORE_BACKGROUND = 19;

interface WaitingCall extends Pick<AcquireOptions, 'priority' | 'maxPauseMs'> {
  readonly resolve: (permit: Permit) => void;
  readonly reject: (reason: unknown) => void;
  unsubscribe?: () => void;
}

/**
 * Keeps the calls that wait for a token of one bucket, in one lane for each priority, and the pause that a 429 asked for. Chooses the
 * call that goes next.
 */
export class CallQueue {
  readonly #endpoint: string;
  readonly #maxQueue: number;
  readonly #onAbort: () => void;
  readonly #lanes = { interactive: new Set<WaitingCall>(), background: new Set<WaitingCall>() };
  /** The calls that joined since `rejectExcess` ran, in their order. */
  #joined: WaitingCall[] = [];
  #interactiveRun = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  constructor(endpoint: string, maxQueue: number, onAbort: () => void) {
    this.#endpoint = endpoint;
    this.#maxQueue = maxQueue;
    this.#onAbort = onAbort;
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  get size(): number {
    return this.#lanes.interactive.size + this.#lanes.background.size;
  }

  get interactiveSize(): number {
    return this.#lanes.interactive.size;
  }

  snapshot(limit: number, inUse: number, now: number): BucketSnapshot {
    const pauseLeftMs = this.#pausedUntil - now;
    const pausedUntil = pauseLeftMs > 0 ? Math.round(systemClock.wallNow() + pauseLeftMs) : null;
    return { limit, inUse, queued: this.size, pausedUntil };
  }

  /** Adds a call. The promise rejects if the signal aborts, or if the pause is longer than the call waits for. */
  wait({ priority, signal, maxPauseMs }: AcquireOptions, now: number): Promise<Permit> {
    const pausedForMs = this.#pausedUntil - now;
    if (isPauseTooLong(pausedForMs, maxPauseMs)) return Promise.reject(new LongPauseError(pausedForMs));
    return new Promise((resolve, reject) => {
      const call: WaitingCall = { priority, maxPauseMs, resolve, reject };
      this.#lanes[priority].add(call);
      if (Number.isFinite(this.#maxQueue)) this.#joined.push(call);
      if (signal === undefined) return;
      call.unsubscribe = onAbort(signal, () => {
        this.#reject(call, signal.reason);
        this.#onAbort();
      });
    });
  }

  /** Pauses the bucket, and rejects the calls that do not wait that long. An earlier pause that ends later is kept. */
  pauseUntil(until: number, now: number): void {
    if (until <= this.#pausedUntil) return;
    this.#pausedUntil = until;
    for (const call of this.#calls()) {
      if (isPauseTooLong(until - now, call.maxPauseMs)) this.#reject(call, new LongPauseError(until - now));
    }
  }

  /**
   * Finds the call that goes next. Background calls leave `reserved` of the `free` tokens to interactive calls, except after
   * `MAX_INTERACTIVE_BEFORE_BACKGROUND` interactive calls in a row.
   */
  next(free: number, reserved: number): WaitingCall | undefined {
    if (free <= 0) return undefined;
    const [background] = this.#lanes.background;
    const [interactive] = this.#lanes.interactive;
    if (background && this.#interactiveRun >= MAX_INTERACTIVE_BEFORE_BACKGROUND) return background;
    return interactive ?? (free > reserved ? background : undefined);
  }

  take(free: number, reserved: number): WaitingCall | undefined {
    const call = this.next(free, reserved);
    if (call === undefined) return undefined;
    this.#remove(call);
    const isBeforeBackground = call.priority === 'interactive' && this.#lanes.background.size > 0;
    this.#interactiveRun = isBeforeBackground ? this.#interactiveRun + 1 : 0;
    return call;
  }

  /** Rejects the latest calls beyond `maxQueue`. */
  rejectExcess(): void {
    // The queue was not too long before these calls joined, so no older call is rejected.
    const joined = this.#joined;
    this.#joined = [];
    for (const call of joined.reverse()) {
      if (this.size <= this.#maxQueue) break;
      if (!this.#lanes[call.priority].has(call)) continue;
      const message = `The queue of \`${this.#endpoint}\` is full (\`maxQueue\` is ${this.#maxQueue}); this call was not sent. Call again later, or raise \`maxQueue\``;
      this.#reject(call, new QueueFullError(message));
    }
  }

  rejectAll(createReason: () => unknown): void {
    for (const call of this.#calls()) this.#reject(call, createReason());
  }

  #calls(): WaitingCall[] {
    return [...this.#lanes.interactive, ...this.#lanes.background];
  }

  #remove(call: WaitingCall): void {
    this.#lanes[call.priority].delete(call);
    call.unsubscribe?.();
  }

  #reject(call: WaitingCall, reason: unknown): void {
    this.#remove(call);
    call.reject(reason);
  }
}

function isPauseTooLong(pausedForMs: number, maxPauseMs: number | undefined): boolean {
  // Compare whole milliseconds: rounding can make a pause of an hour slightly longer than an hour.
  return maxPauseMs !== undefined && Math.floor(pausedForMs) > maxPauseMs;
}

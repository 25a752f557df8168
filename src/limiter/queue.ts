import { onAbort } from '../common/abort.ts';
import type { Clock } from '../common/clock.ts';
import { isAbortSignal, refuseOption } from '../common/option-checks.ts';
import { QueueFullError, TimeoutError } from '../errors.ts';
import {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  LongPauseError,
  type Permit,
} from './limiter.ts';

/** While a background call waits, at most this many interactive calls go before it. */
export const LONGEST_INTERACTIVE_RUN = 19;

/** With this many buckets the idle ones are looked for and forgotten, so a key that changes daily leaks nothing. */
const CLEAN_FROM_BUCKETS = 256;

/** A call that asks a bucket for a token. */
export interface TokenRequest
  extends Pick<AcquireOptions, 'priority' | 'maxWaitMs' | 'maxPauseMs' | 'signal'> {
  readonly resolve: (permit: Permit) => void;
  readonly reject: (reason: unknown) => void;
}

/** The calls of one account to one endpoint, and its tokens. */
interface Bucket {
  enqueue(request: TokenRequest): void;
  snapshot(): BucketSnapshot;
  /** True when forgetting the bucket changes nothing that matters. */
  isIdle(): boolean;
}

/** One string per bucket; JSON keeps `a|b` and `c` apart from `a` and `b|c`. */
export function bucketKey({ baseUrl, account, endpoint }: BucketId): string {
  return JSON.stringify([baseUrl, account, endpoint]);
}

/** The buckets of one limiter, each made by its first call. */
export class Buckets<B extends Bucket> {
  readonly #create: (options: AcquireOptions) => B;
  readonly #buckets = new Map<string, B>();
  #cleanFrom = CLEAN_FROM_BUCKETS;

  constructor(create: (options: AcquireOptions) => B) {
    this.#create = create;
  }

  /** Not an async function: ten thousand waiting calls would pay for a second promise and a suspended frame each. */
  acquire(options: AcquireOptions): Promise<Permit> {
    return new Promise((resolve, reject) => {
      checkAsked(options);
      const { maxWaitMs, maxPauseMs, priority, signal } = options;
      if (signal?.aborted) return reject(signal.reason);
      this.#get(options).enqueue({ priority, maxWaitMs, maxPauseMs, signal, resolve, reject });
    });
  }

  snapshot(id: BucketId): BucketSnapshot | undefined {
    return this.#buckets.get(bucketKey(id))?.snapshot();
  }

  #get(options: AcquireOptions): B {
    const key = bucketKey(options.bucket);
    const known = this.#buckets.get(key);
    if (known) return known;
    const bucket = this.#create(options);
    this.#forgetIdle();
    this.#buckets.set(key, bucket);
    return bucket;
  }

  /** Doubling the mark keeps the cost of looking constant per bucket that was made. */
  #forgetIdle(): void {
    if (this.#buckets.size < this.#cleanFrom) return;
    for (const [key, bucket] of this.#buckets) if (bucket.isIdle()) this.#buckets.delete(key);
    this.#cleanFrom = Math.max(CLEAN_FROM_BUCKETS, 2 * this.#buckets.size);
  }
}

/** By hand, since every call pays for it; the limits are checked when they make a bucket. */
export function checkAsked(options: AcquireOptions): void {
  if (typeof options !== 'object' || options === null) refuseOption('options', 'an object', options);
  const { bucket, priority, signal, maxWaitMs, maxPauseMs } = options;
  if (typeof bucket !== 'object' || bucket === null) refuseOption('bucket', 'an object', bucket);
  for (const name of ['baseUrl', 'account', 'endpoint'] as const)
    if (typeof bucket[name] !== 'string') refuseOption(`bucket.${name}`, 'a string', bucket[name]);
  if (priority !== 'interactive' && priority !== 'background')
    refuseOption('priority', '"interactive" or "background"', priority);
  if (signal !== undefined && !isAbortSignal(signal)) refuseOption('signal', 'an AbortSignal', signal);
  checkPatience('maxWaitMs', maxWaitMs);
  checkPatience('maxPauseMs', maxPauseMs);
}

function checkPatience(name: string, value: unknown): void {
  // Infinity is patience, too.
  if (value === undefined || (typeof value === 'number' && value >= 0)) return;
  refuseOption(name, 'a number of milliseconds of 0 or more', value);
}

/** One call that waits; a lane links it to its neighbours. */
interface WaitingCall extends TokenRequest {
  /** Monotonic time after which it no longer wants a token; Infinity for never. */
  readonly deadline: number;
  /** The larger, the later it came. */
  readonly place: number;
  previous: WaitingCall | undefined;
  next: WaitingCall | undefined;
}

/** First in, first out, with removal from the middle in constant time. */
class Lane {
  first: WaitingCall | undefined;
  last: WaitingCall | undefined;
  size = 0;

  append(call: WaitingCall): void {
    call.previous = this.last;
    if (this.last) this.last.next = call;
    else this.first = call;
    this.last = call;
    this.size += 1;
  }

  remove(call: WaitingCall): void {
    if (call.previous) call.previous.next = call.next;
    else this.first = call.next;
    if (call.next) call.next.previous = call.previous;
    else this.last = call.previous;
    call.previous = undefined;
    call.next = undefined;
    this.size -= 1;
  }
}

/** The calls that wait for a token of one bucket: a lane per priority, the rule of whose turn it is, and who gives up when. */
export class CallQueue {
  readonly #options: { name: string; maxQueue: number; clock: Clock; onAbort: () => void };
  readonly #lanes = { interactive: new Lane(), background: new Lane() };
  /** The calls of each signal share one callback: ten thousand of them would cost more than the queue itself. */
  readonly #groups = new Map<
    AbortSignal,
    { readonly calls: Set<WaitingCall>; readonly unsubscribe: () => void }
  >();
  #places = 0;
  #interactiveRun = 0;
  #earliestDeadline = Number.POSITIVE_INFINITY;

  /** @param options - `name`: of the endpoint, for errors; `onAbort`: called after a call left because its signal aborted */
  constructor(options: { name: string; maxQueue: number; clock: Clock; onAbort: () => void }) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.interactive.size + this.#lanes.background.size;
  }

  get interactive(): number {
    return this.#lanes.interactive.size;
  }

  /**
   * No waiting call's deadline is earlier. It may be that of a call that has left: keeping it exact would cost
   * more than the one needless look.
   */
  get earliestDeadline(): number {
    return this.#earliestDeadline;
  }

  /** Lets a call wait; rejects it when it would not sit out the pause. */
  append(request: TokenRequest, pausedForMs: number): void {
    if (isTooLong(pausedForMs, request)) {
      request.reject(new LongPauseError(pausedForMs));
      return;
    }
    const { signal, maxWaitMs = Number.POSITIVE_INFINITY } = request;
    const call: WaitingCall = {
      // Field by field: V8 keeps a spread object as a dictionary, which doubles the memory of a waiting call.
      priority: request.priority,
      maxWaitMs: request.maxWaitMs,
      maxPauseMs: request.maxPauseMs,
      resolve: request.resolve,
      reject: request.reject,
      signal,
      deadline: this.#options.clock.now() + maxWaitMs,
      place: this.#places,
      previous: undefined,
      next: undefined,
    };
    this.#places += 1;
    this.#lanes[call.priority].append(call);
    this.#earliestDeadline = Math.min(this.#earliestDeadline, call.deadline);
    if (signal !== undefined) this.#watch(signal, call);
  }

  /**
   * Whose turn it is, if anybody's.
   *
   * @param free - tokens that are in the bucket
   * @param reserve - how many of them background calls leave there
   */
  next(free: number, reserve: number): WaitingCall | undefined {
    if (free <= 0) return undefined;
    const background = this.#lanes.background.first;
    if (background && this.#interactiveRun >= LONGEST_INTERACTIVE_RUN) return background;
    return this.#lanes.interactive.first ?? (free > reserve ? background : undefined);
  }

  /** Removes and returns the call whose turn it is; see `next`. */
  take(now: number, free: number, reserve: number): WaitingCall | undefined {
    for (let call = this.next(free, reserve); call; call = this.next(free, reserve)) {
      // Timers may be late: a call whose time is over must not burn a token.
      if (call.deadline < now) {
        this.#reject(call, this.#timeout(call));
        continue;
      }
      this.#remove(call);
      const passedOver = call.priority === 'interactive' && this.#lanes.background.size > 0;
      this.#interactiveRun = passedOver ? this.#interactiveRun + 1 : 0;
      return call;
    }
    return undefined;
  }

  /** Rejects every call whose deadline has come. */
  rejectExpired(now: number): void {
    if (this.#earliestDeadline > now) return;
    this.#earliestDeadline = Number.POSITIVE_INFINITY;
    for (const call of this.#all()) {
      if (call.deadline <= now) this.#reject(call, this.#timeout(call));
      else this.#earliestDeadline = Math.min(this.#earliestDeadline, call.deadline);
    }
  }

  /** Rejects every call that would not sit a pause out. */
  rejectImpatient(pausedForMs: number): void {
    for (const call of this.#all()) {
      if (isTooLong(pausedForMs, call)) this.#reject(call, new LongPauseError(pausedForMs));
    }
  }

  /** Rejects the latest calls, as far as more wait than may. */
  rejectExcess(): void {
    const { name, maxQueue } = this.#options;
    const { interactive, background } = this.#lanes;
    while (this.size > maxQueue) {
      const isInteractive = (interactive.last?.place ?? -1) > (background.last?.place ?? -1);
      const latest = isInteractive ? interactive.last : background.last;
      if (!latest) return;
      const message = `Expected at most ${maxQueue} calls of \`${name}\` to wait for the rate limit, got one more`;
      this.#reject(latest, new QueueFullError(message));
    }
  }

  rejectAll(createReason: () => unknown): void {
    for (const call of this.#all()) this.#reject(call, createReason());
  }

  *#all(): Iterable<WaitingCall> {
    for (const lane of [this.#lanes.interactive, this.#lanes.background]) {
      let call = lane.first;
      while (call) {
        // The call may be removed before the loop goes on.
        const following: WaitingCall | undefined = call.next;
        yield call;
        call = following;
      }
    }
  }

  #remove(call: WaitingCall): void {
    this.#lanes[call.priority].remove(call);
    if (call.signal !== undefined) this.#unwatch(call.signal, call);
    if (this.size === 0) this.#earliestDeadline = Number.POSITIVE_INFINITY;
  }

  #watch(signal: AbortSignal, call: WaitingCall): void {
    const known = this.#groups.get(signal);
    if (known) {
      known.calls.add(call);
      return;
    }
    const calls = new Set([call]);
    const unsubscribe = onAbort(signal, () => {
      for (const waiting of calls) this.#reject(waiting, signal.reason);
      this.#options.onAbort();
    });
    this.#groups.set(signal, { calls, unsubscribe });
  }

  #unwatch(signal: AbortSignal, call: WaitingCall): void {
    const group = this.#groups.get(signal);
    group?.calls.delete(call);
    if (group?.calls.size !== 0) return;
    group.unsubscribe();
    this.#groups.delete(signal);
  }

  #reject(call: WaitingCall, reason: unknown): void {
    this.#remove(call);
    call.reject(reason);
  }

  #timeout({ maxWaitMs = 0 }: WaitingCall): TimeoutError {
    return queueTimeout(this.#options.name, maxWaitMs);
  }
}

/** No token came in time. */
export function queueTimeout(name: string, maxWaitMs: number): TimeoutError {
  const message = `Expected a free slot for \`${name}\` within ${maxWaitMs} ms, got none`;
  return new TimeoutError(message, { phase: 'queue', timeoutMs: maxWaitMs });
}

function isTooLong(pausedForMs: number, { maxPauseMs }: TokenRequest): boolean {
  // Whole milliseconds: what is left of an hour may be an hour and a billionth.
  return maxPauseMs !== undefined && Math.floor(pausedForMs) > maxPauseMs;
}

// What only the old RedisLimiter still needs. It goes with that limiter.

import { z } from 'zod';
import { onAbort } from '../common/abort.ts';
import { MAX_TIMER_MS, systemClock } from '../common/clock.ts';
import {
  checkOptions,
  countOption,
  delayOption,
  hasMethods,
  isAbortSignal,
  option,
  refuseOption,
} from '../common/option-checks.ts';
import { QueueFullError, TimeoutError } from '../errors.ts';
import {
  type BucketId,
  type BucketSnapshot,
  type AcquireOptions as LimiterAcquireOptions,
  LongPauseError,
  type Permit,
  type RateLimitFeedback,
} from '../limiter/limiter.ts';

export interface AcquireOptions extends LimiterAcquireOptions {
  readonly maxWaitMs?: number | undefined;
}

/** Where the time comes from; give your own to run without real time. */
export interface Clock {
  /**
   * A clock that only goes forward.
   *
   * @returns milliseconds, from whatever zero
   */
  now(): number;
  /**
   * What people read; this clock can jump.
   *
   * @returns milliseconds since the epoch
   */
  wallNow(): number;
  /**
   * Calls back once.
   *
   * @param callback - what to call
   * @param delayMs - after how many milliseconds, at most 2^31 - 1
   * @returns what `clearTimeout` takes
   */
  setTimeout(callback: () => void, delayMs: number): unknown;
  /**
   * Takes a call back.
   *
   * @param timer - what `setTimeout` of the same clock returned
   */
  clearTimeout(timer: unknown): void;
}

/** One timer that is moved as often as its moment changes. */
export class ReschedulableTimer {
  readonly #clock: Clock;
  readonly #onWake: () => void;
  #set:
    | {
        readonly handle: unknown;
        readonly wakeAt: number;
        readonly keepsAlive: boolean;
        readonly timers: unknown;
      }
    | undefined;

  constructor(clock: Clock, onWake: () => void) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /**
   * @param wakeAt - when to call back at the latest, on the clock; Infinity for never
   * @param keepsAlive - false when a program that has nothing else to do may end before
   */
  set(wakeAt: number, keepsAlive = true): void {
    // The timer went with the fake timers that a test took away, or does not move with those that it installed.
    if (this.#set?.timers !== globalThis.setTimeout) this.clear();
    // A timer that fires too soon only looks and is set again; one that fires too late would lose time.
    const isSoonEnough = this.#set !== undefined && this.#set.wakeAt <= wakeAt;
    if (isSoonEnough && wakeAt !== Number.POSITIVE_INFINITY && this.#set?.keepsAlive === keepsAlive) return;
    this.clear();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const delayMs = Math.min(Math.max(1, Math.ceil(wakeAt - this.#clock.now())), MAX_TIMER_MS);
    const handle = this.#clock.setTimeout(() => {
      if (this.#set?.handle === handle) this.#set = undefined;
      this.#onWake();
    }, delayMs);
    if (!keepsAlive) unref(handle);
    this.#set = { handle, wakeAt, keepsAlive, timers: globalThis.setTimeout };
  }

  clear(): void {
    if (this.#set === undefined) return;
    // A timer of other timers than now can't be cleared by these; should it fire, it only looks.
    if (this.#set.timers === globalThis.setTimeout) this.#clock.clearTimeout(this.#set.handle);
    else unref(this.#set.handle);
    this.#set = undefined;
  }
}

/** Timers of Node and the like have the method, those of other clocks may not. */
function unref(handle: unknown): void {
  if (typeof handle !== 'object' || handle === null || !('unref' in handle)) return;
  if (typeof handle.unref === 'function') handle.unref();
}

/** The length of the service's window in milliseconds (one second). */
export const WINDOW_MS = 1_000;

/** From an answer to the return of its token: two machines never agree to the millisecond on how long a window is. */
export const RETURN_MS = WINDOW_MS + 10;

/** How long a token stays with a caller who neither sends nor cancels. */
const UNSENT_LEASE_MS = 60_000;

/** A limit from which one token can stay free for interactive calls without costing background calls much. */
export const RESERVE_FROM_LIMIT = 10;

/**
 * The largest limit that an answer can announce. A larger number is what a gateway allows in an hour or a day; taken for
 * a limit per second it would let everything that waits leave at once.
 */
export const LARGEST_ANNOUNCED_LIMIT = 1_000;

/**
 * Whether an announced number is a limit per second.
 *
 * @param configured - the limit that the caller knows; where that is larger, as large a one may be announced
 */
export function isPlausibleLimit(announced: number | undefined, configured: number): announced is number {
  if (announced === undefined || !Number.isSafeInteger(announced)) return false;
  return announced >= 1 && announced <= Math.max(LARGEST_ANNOUNCED_LIMIT, configured);
}

/**
 * No refusal pauses an endpoint for longer. A delay beyond it is more likely a mistake, as a timestamp that stands where
 * seconds belong; and where it is none, the one request that leaves after the hour is told the rest.
 */
export const MAX_PAUSE_MS = 60 * 60 * 1_000;

/** How long a refusal pauses its endpoint, in milliseconds: what the service asked for, else one window. */
export function pauseMsOf({ retryAfterMs = WINDOW_MS }: RateLimitFeedback): number {
  const isDelay = Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
  return isDelay ? Math.min(retryAfterMs, MAX_PAUSE_MS) : WINDOW_MS;
}

/** The end of a pause as people read it, in milliseconds since the epoch; null when it is over. */
export function pauseEnd(until: number, clock: Clock): number | null {
  const leftMs = until - clock.now();
  return leftMs > 0 ? Math.round(clock.wallNow() + leftMs) : null;
}

/** One token that is out. Only the pool writes to it. */
export interface Token {
  state: 'granted' | 'sent' | 'settled' | 'cancelled';
  sentAt: number;
  freeAt: number;
  /** How many requests had left so long before this one that no window holds both. */
  sentLongBefore: number;
  /** Longest pause that its call sits out, in milliseconds. */
  readonly maxPauseMs: number;
}

export function newToken(now: number, maxPauseMs = MAX_PAUSE_MS): Token {
  return { state: 'granted', sentAt: now, freeAt: now + UNSENT_LEASE_MS, sentLongBefore: 0, maxPauseMs };
}

/**
 * The tokens that are out, and when each comes back.
 *
 * The service counts a request somewhere between its sending and its answer. A token that is used again no earlier
 * than one window after the answer therefore puts at most one request into any window, wherever windows start.
 */
export class TokenPool<T extends Token = Token> {
  /** Whose time may come in any order: as many as there are requests under way. */
  readonly underWay = new Set<T>();
  /** Whose time comes in the order of the answers; so a thousand of them cost no more to look after than ten. */
  readonly #answered: T[] = [];
  /** From sending a request to the return of a token that is never settled. */
  readonly longestMs: number;
  /** Requests that have left. */
  #sent = 0;

  /** @param maxUplinkMs - longest time in milliseconds from sending a request to the service counting it */
  constructor(maxUplinkMs: number) {
    this.longestMs = maxUplinkMs + RETURN_MS;
  }

  get inUse(): number {
    return this.underWay.size + this.#answered.length;
  }

  get all(): T[] {
    return [...this.underWay, ...this.#answered];
  }

  /** When the first token that is out comes back; Infinity when none is out. */
  get nextFreeAt(): number {
    let earliest = this.#answered[0]?.freeAt ?? Number.POSITIVE_INFINITY;
    for (const token of this.underWay) earliest = Math.min(earliest, token.freeAt);
    return earliest;
  }

  /** Takes back every token whose time has come. */
  collect(now: number): void {
    for (const token of this.underWay) if (token.freeAt <= now) this.underWay.delete(token);
    let count = 0;
    while ((this.#answered[count]?.freeAt ?? Number.POSITIVE_INFINITY) <= now) count += 1;
    this.#answered.splice(0, count);
  }

  grant(token: T): T {
    this.underWay.add(token);
    return token;
  }

  /** Adds the token again if its lease ran out, even over the limit: the request counts, and later ones must wait. */
  send(token: T, now: number): boolean {
    if (token.state !== 'granted') return false;
    token.state = 'sent';
    token.sentAt = now;
    token.freeAt = now + this.longestMs;
    this.underWay.add(token);
    this.#sent += 1;
    token.sentLongBefore = this.#sent - (this.inUse - this.count('granted'));
    return true;
  }

  /** The most requests that the service can have counted in one window when it answered this one, which is among them. */
  mostCounted(token: T): number {
    return this.#sent - token.sentLongBefore;
  }

  /** How many tokens are held by calls that have not sent their request, or have no response to it. */
  count(wanted: 'granted' | 'sent'): number {
    let count = 0;
    for (const { state } of this.underWay) if (state === wanted) count += 1;
    return count;
  }

  report(token: T, now: number): boolean {
    if (token.state !== 'sent') return false;
    token.state = 'settled';
    const freeAt = now + RETURN_MS;
    // A late answer changes nothing, nor does one that comes when the token is back.
    if (freeAt < token.freeAt) {
      this.underWay.delete(token);
      token.freeAt = freeAt;
      this.#answered.push(token);
    }
    return true;
  }

  cancel(token: T): boolean {
    if (token.state !== 'granted') return false;
    token.state = 'cancelled';
    this.underWay.delete(token);
    return true;
  }
}

/** The permit of one token, whose life its bucket looks after. */
export function createPermit<T extends Token>(
  bucket: {
    send(token: T): void;
    report(token: T, feedback: RateLimitFeedback): void;
    cancel(token: T): void;
  },
  token: T,
  tokensLeft: number,
): Permit {
  return {
    tokensLeft,
    send: () => bucket.send(token),
    report: (feedback) => bucket.report(token, feedback),
    cancel: () => bucket.cancel(token),
  };
}

/** What a refusal leaves of the share. */
export const CUT_FACTOR = 0.9;
/** How long the share stays as it is after a cut. */
export const HOLD_MS = 30_000;
/** How much of the limit comes back in a second after that. */
export const RECOVERY_PER_SECOND = 0.005;
/** Below this the bucket would wait for minutes after a bad spell that is long over. */
export const SMALLEST_SHARE = 0.1;

/**
 * Leaves room for other users of the same account.
 *
 * A limiter that keeps its own promise is refused only when somebody else uses the allowance too. Each such refusal cuts
 * the share of the limit that is used, holds it for a while and gives it back slowly. Below the full share, grants are
 * spread evenly, because a burst takes from others what they were about to use.
 */
export class Pace {
  #shareAfterCut = 1;
  #cutAt = Number.NEGATIVE_INFINITY;

  /** Share of the limit in use, from 0.1 to 1. */
  share(now: number): number {
    const recoveringMs = Math.max(0, now - this.#cutAt - HOLD_MS);
    return Math.min(1, this.#shareAfterCut + (recoveringMs / 1_000) * RECOVERY_PER_SECOND);
  }

  /** Shortest time in milliseconds between two grants; 0 while nobody else was noticed. */
  spacingMs(limit: number, now: number): number {
    const share = this.share(now);
    return share === 1 ? 0 : WINDOW_MS / (limit * share);
  }

  /**
   * The service refused a request.
   *
   * @param sentAt - when that request was sent; one from before the last cut says nothing about the share since then
   */
  refused(sentAt: number, now: number): void {
    if (sentAt <= this.#cutAt) return;
    this.#shareAfterCut = Math.max(SMALLEST_SHARE, this.share(now) * CUT_FACTOR);
    this.#cutAt = now;
  }
}

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
const CLOCK_METHODS = ['now', 'wallNow', 'setTimeout', 'clearTimeout'] as const;

/** The options that all limiters of this package have. */
export const SETTINGS_SHAPE = {
  maxQueue: countOption(0, true).default(Number.POSITIVE_INFINITY),
  maxUplinkMs: delayOption.default(500),
  reserve: countOption(0).optional(),
  clock: option<Clock>(`an object with the methods ${CLOCK_METHODS.join(', ')}`, (clock) =>
    hasMethods(clock, ...CLOCK_METHODS),
  ).default(() => systemClock),
};

/** What the limiters of this package have in common, after the checks. */
export type LimiterSettings = z.output<z.ZodObject<typeof SETTINGS_SHAPE>>;

const limitsOfBucket = z.object({
  limit: countOption(1),
  maxLimit: countOption(1, true).default(Number.POSITIVE_INFINITY),
});

/** Checks what the first call of a bucket sets. */
export function checkLimits(options: AcquireOptions): z.output<typeof limitsOfBucket> {
  return checkOptions(limitsOfBucket, options);
}

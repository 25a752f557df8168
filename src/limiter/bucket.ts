import { type Clock, MAX_TIMER_MS } from '../common/timing.ts';
import type { AbortGroups } from './abort-groups.ts';
import { isBelievable } from './announced-limit.ts';
import type { BucketSnapshot, Priority, Settlement, Ticket } from './limiter.ts';
import { LongPauseError } from './long-pause-error.ts';
import { Pace } from './pace.ts';
import { pauseEnd, pauseMsOf } from './pause.ts';
import { queueFullError, queueTimeoutError } from './queue-errors.ts';
import { type Token, TokenPool } from './token-pool.ts';
import { isTooLong, type Waiter, WaitQueue } from './wait-queue.ts';

/** A limit from which one token can stay free for interactive calls without costing background calls much. */
export const RESERVE_FROM_LIMIT = 10;

/** One call that waits for a token of a bucket. */
export interface PendingCall extends Waiter {
  readonly bucket: Bucket;
  readonly maxWaitMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (ticket: Ticket) => void;
  readonly reject: (reason: unknown) => void;
}

/** What a bucket is made of; see `TokenBucketLimiterOptions`. */
export interface BucketOptions {
  readonly name: string;
  readonly limit: number;
  readonly maxLimit: number;
  readonly maxQueue: number;
  readonly maxUplinkMs: number;
  readonly reserve: number | undefined;
  readonly clock: Clock;
  readonly aborts: AbortGroups<PendingCall>;
}

/** The allowance of one endpoint for one account: who holds tokens, who waits, and when the next may go. */
export class Bucket {
  readonly #options: BucketOptions;
  readonly #clock: Clock;
  readonly #tokens: TokenPool;
  readonly #queue = new WaitQueue<PendingCall>();
  readonly #pace = new Pace();
  #limit: number;
  /** When the request was sent whose answer announced the limit. */
  #limitKnownSince = Number.NEGATIVE_INFINITY;
  #gateOpensAt = Number.NEGATIVE_INFINITY;
  #lastGrantAt = Number.NEGATIVE_INFINITY;
  #timer: { readonly handle: unknown; readonly wakeAt: number } | undefined;

  constructor(options: BucketOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#tokens = new TokenPool(options.maxUplinkMs);
    this.#limit = Math.min(options.limit, options.maxLimit);
  }

  /** Grants a token to the call now or later, or rejects it. */
  enqueue(options: {
    priority: Priority;
    maxWaitMs: number | undefined;
    maxPauseMs: number | undefined;
    signal: AbortSignal | undefined;
    resolve: (ticket: Ticket) => void;
    reject: (reason: unknown) => void;
  }): void {
    const { maxWaitMs, maxPauseMs, signal } = options;
    const pausedForMs = this.#gateOpensAt - this.#clock.now();
    if (isTooLong(pausedForMs, options)) {
      options.reject(new LongPauseError(pausedForMs));
      return;
    }
    const call: PendingCall = {
      bucket: this,
      priority: options.priority,
      deadline: maxWaitMs === undefined ? Number.POSITIVE_INFINITY : this.#clock.now() + maxWaitMs,
      maxWaitMs,
      maxPauseMs,
      signal,
      resolve: options.resolve,
      reject: options.reject,
      previous: undefined,
      next: undefined,
    };
    if (signal) this.#options.aborts.add(signal, call);
    this.#queue.append(call);
    this.#pump();
    // Looked at after the pump, so that a call that can go at once never counts as waiting.
    if (this.#queue.size > this.#options.maxQueue) {
      this.giveUp(call, queueFullError(this.#options.name, this.#options.maxQueue));
    }
  }

  /** Takes a waiting call out of the queue and rejects it. Nobody else can go sooner because of that. */
  giveUp(call: PendingCall, reason: unknown): void {
    this.#queue.remove(call);
    this.#rejectRemoved(call, reason);
    if (this.#queue.size === 0) this.#disarm();
  }

  snapshot(): BucketSnapshot {
    this.#tokens.collect(this.#clock.now());
    return {
      limit: this.#limit,
      inUse: this.#tokens.inUse,
      queued: this.#queue.size,
      pausedUntil: pauseEnd(this.#gateOpensAt, this.#clock),
    };
  }

  /** True when forgetting the bucket changes nothing but the limit the service announced. */
  isIdle(): boolean {
    const { inUse, queued, pausedUntil } = this.snapshot();
    return inUse === 0 && queued === 0 && pausedUntil === null && this.#pace.share(this.#clock.now()) === 1;
  }

  #pump(): void {
    const now = this.#clock.now();
    this.#tokens.collect(now);
    while (now >= this.#gateOpensAt && now >= this.#spacedUntil(now)) {
      const call = this.#nextCall();
      if (!call) break;
      // The timer may be late: a call whose time is over must not burn a token.
      if (call.deadline < now) this.giveUp(call, this.#timeout(call));
      else this.#grant(call, now);
    }
    for (const call of this.#queue.takeExpired(now)) this.#rejectRemoved(call, this.#timeout(call));
    this.#arm(now);
  }

  #nextCall(): PendingCall | undefined {
    const reserve = this.#options.reserve ?? (this.#limit >= RESERVE_FROM_LIMIT ? 1 : 0);
    // A reserve of the whole limit would shut background calls out for ever.
    return this.#queue.next(this.#limit - this.#tokens.inUse, Math.min(reserve, this.#limit - 1));
  }

  #grant(call: PendingCall, now: number): void {
    this.#queue.take(call);
    if (call.signal) this.#options.aborts.remove(call.signal, call);
    this.#lastGrantAt = now;
    const token = this.#tokens.grant(now);
    call.resolve({
      tokensLeft: this.#limit - this.#tokens.inUse,
      send: () => {
        this.#tokens.send(token, this.#clock.now());
        this.#pump();
      },
      settle: (settlement) => this.#settle(token, settlement),
      cancel: () => {
        this.#tokens.cancel(token);
        this.#pump();
      },
    });
  }

  #settle(token: Token, settlement: Settlement): void {
    if (token.state !== 'sent') return;
    const now = this.#clock.now();
    this.#tokens.settle(token, now);
    this.#announce(settlement.announcedLimit, token.sentAt);
    if (settlement.status === 429) {
      this.#gateOpensAt = Math.max(this.#gateOpensAt, now + pauseMsOf(settlement));
      this.#refuseImpatient(this.#gateOpensAt - now);
      this.#pace.refused(token.sentAt, now);
    }
    this.#pump();
  }

  /** Rejects those who would not wait for the end of a pause. */
  #refuseImpatient(pausedForMs: number): void {
    for (const call of this.#queue.takeImpatient(pausedForMs)) {
      this.#rejectRemoved(call, new LongPauseError(pausedForMs));
    }
  }

  #announce(limit: number | undefined, sentAt: number): void {
    if (!isBelievable(limit, this.#options.limit)) return;
    // Answers overtake each other; an older request's must not bring an older limit back.
    if (sentAt < this.#limitKnownSince) return;
    this.#limitKnownSince = sentAt;
    this.#limit = Math.min(limit, this.#options.maxLimit);
  }

  #spacedUntil(now: number): number {
    return this.#lastGrantAt + this.#pace.spacingMs(this.#limit, now);
  }

  #arm(now: number): void {
    if (this.#queue.size === 0) {
      this.#disarm();
      return;
    }
    const tokenAt = this.#nextCall() ? now : this.#tokens.nextFreeAt;
    const grantAt = Math.max(tokenAt, this.#gateOpensAt, this.#spacedUntil(now));
    const wakeAt = Math.min(grantAt, this.#queue.earliestDeadline);
    // A timer that fires too soon only looks and arms again; one that fires too late would lose time.
    if (this.#timer && this.#timer.wakeAt <= wakeAt) return;
    this.#disarm();
    const delayMs = Math.min(Math.ceil(wakeAt - now), MAX_TIMER_MS);
    const handle = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#pump();
    }, delayMs);
    this.#timer = { handle, wakeAt };
  }

  #disarm(): void {
    if (this.#timer) this.#clock.clearTimeout(this.#timer.handle);
    this.#timer = undefined;
  }

  #rejectRemoved(call: PendingCall, reason: unknown): void {
    if (call.signal) this.#options.aborts.remove(call.signal, call);
    call.reject(reason);
  }

  #timeout(call: PendingCall): unknown {
    return queueTimeoutError(this.#options.name, call.maxWaitMs ?? 0);
  }
}

import type { Clock } from '../../clock.ts';
import { ConnectionError } from '../../errors.ts';
import type { BucketSnapshot, Ticket } from '../../limiter/limiter.ts';
import { CallQueue, type QueuedCall, type WaitOptions } from './call-queue.ts';
import { type Answer, Exchange } from './exchange.ts';
import { HeldTokens } from './held-tokens.ts';
import { emptyReport, type Lease, LeaseBook, type Report } from './lease-book.ts';
import { LocalShare } from './local-share.ts';
import type { SharedBucketOptions } from './shared-bucket-options.ts';
import { ticketOf } from './ticket.ts';
import { SEND_WITHIN_MS } from './timing.ts';
import { WakeTimer } from './wake-timer.ts';

const NEVER = Number.POSITIVE_INFINITY;

const NO_WISHES = { interactive: 0, background: 0, total: 0 };

/** Two ends of a pause that are no farther apart are one. */
const SAME_PAUSE_MS = 20;

/** This process's side of one bucket in Redis: who waits here, which tokens are ours, and when to talk with Redis. */
export class SharedBucket {
  readonly #options: SharedBucketOptions;
  readonly #clock: Clock;
  readonly #exchange: Exchange;
  readonly #queue: CallQueue;
  readonly #leases: LeaseBook;
  readonly #held = new HeldTokens();
  #local: LocalShare | undefined;
  #limit: number;
  /** What the service announced last, or else the configured limit. */
  #announced: number;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** When our wishes are next put to Redis; never while all are fulfilled. */
  #askAt = NEVER;
  /** Interactive calls that Redis knows of and has no token for. */
  #unmetInteractive = 0;
  /** True when Redis failed since we last heard of it. */
  #wasAway = false;
  #isTalking = false;
  #isPumpDue = false;
  readonly #timer: WakeTimer;

  constructor(options: SharedBucketOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#timer = new WakeTimer(options.clock, () => this.#pump());
    this.#exchange = new Exchange(options);
    this.#leases = new LeaseBook(options.maxUplinkMs);
    this.#limit = Math.min(options.limit, options.maxLimit);
    this.#announced = options.limit;
    const { maxQueue, clock, aborts } = options;
    this.#queue = new CallQueue({ name: options.bucket.endpoint, maxQueue, clock, aborts });
  }

  /** Grants a token to the call now or later, or rejects it. */
  enqueue(options: WaitOptions): void {
    const now = this.#clock.now();
    const isFirst = this.#wishes().total === 0;
    const mustWait = this.#askAt !== NEVER && this.#askAt > now && !this.#isTalking;
    this.#queue.append(this, options, this.#local !== undefined || mustWait);
    // A background call leaves a reserve that an interactive one may have at once.
    const isNewWish = options.priority === 'interactive' && this.#unmetInteractive === 0;
    if ((isFirst || isNewWish) && this.#wishes().total > 0 && !this.#local) this.#askAt = now;
    this.#pumpSoon();
  }

  /** Takes a waiting call out of the queue and rejects it. */
  giveUp(call: QueuedCall, reason: unknown): void {
    this.#queue.remove(call, reason);
    // Others would wait for our turn in vain.
    if (this.#queue.size === 0 && this.#askAt !== NEVER && !this.#local) this.#askAt = this.#clock.now();
    this.#pumpSoon();
  }

  snapshot(): BucketSnapshot {
    const now = this.#clock.now();
    return {
      limit: this.#limit,
      inUse: this.#leases.inUse(now),
      queued: this.#queue.size,
      pausedUntil: this.#pausedUntil > now ? this.#clock.wallNow() + (this.#pausedUntil - now) : null,
    };
  }

  /** True when this process forgets nothing that matters with the bucket. */
  isIdle(): boolean {
    const { inUse, queued, pausedUntil } = this.snapshot();
    return inUse === 0 && queued === 0 && pausedUntil === null && !this.#isTalking;
  }

  /** Calls of one tick travel together. */
  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    queueMicrotask(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    const now = this.#clock.now();
    this.#queue.expire(now);
    this.#handOut(now);
    this.#leases.renew(now);
    this.#local?.pump(
      now,
      () => this.#queue.size > 0,
      (ticket) => this.#grantLocally(ticket),
    );
    if (this.#talkAt() <= now) void this.#talk();
    this.#arm(now);
  }

  /** Gives every token whose time has come to a call, and back what nobody wants. */
  #handOut(now: number): void {
    // Tokens that were given out before the pause was known must not be used in it.
    const usableFrom = this.#pausedUntil - SAME_PAUSE_MS;
    const unwanted = this.#held.takeUnwanted(this.#queue.size, usableFrom);
    for (const { lease } of unwanted) this.#leases.giveBack(lease, now);
    for (let token = this.#held.takeStarted(now); token; token = this.#held.takeStarted(now)) {
      const call = this.#queue.take();
      if (call) call.resolve(this.#ticket(token.lease, token.tokensLeft));
      else this.#leases.giveBack(token.lease, now);
    }
  }

  /** What we want of Redis beyond the tokens we hold. */
  #wishes(): { interactive: number; background: number; total: number } {
    const total = Math.max(0, this.#queue.size - this.#held.size);
    const interactive = Math.min(total, Math.max(0, this.#queue.interactive - this.#held.interactive));
    return { interactive, background: total - interactive, total };
  }

  #talkAt(): number {
    if (this.#isTalking) return NEVER;
    if (this.#local) return this.#queue.size > 0 ? this.#local.probeAt : NEVER;
    return Math.min(this.#askAt, this.#leases.reportBy);
  }

  async #talk(): Promise<void> {
    this.#isTalking = true;
    const askedAt = this.#clock.now();
    let report: Report | undefined;
    try {
      // A probe may lie in the client's own queue for long and be answered then, so it must not say or want anything.
      if (this.#local) await this.#ask(undefined);
      report = this.#wasAway ? this.#leases.takeAll(askedAt) : this.#leases.takeNews(askedAt);
      await this.#ask(report);
    } catch (error) {
      const now = this.#clock.now();
      if (report) this.#leases.putBack(report, now);
      this.#fail(error, askedAt);
    } finally {
      this.#isTalking = false;
      this.#handOut(this.#clock.now());
      this.#queue.rejectExcess();
      this.#pump();
    }
  }

  /** @param report - undefined for a probe */
  async #ask(report: Report | undefined): Promise<void> {
    const askedAt = this.#clock.now();
    this.#queue.noteAsked();
    const { interactive, background, total } = report ? this.#wishes() : NO_WISHES;
    const nextNumber = this.#leases.nextNumber;
    this.#leases.setAside(total);
    const { limit, maxLimit } = this.#options;
    const share = this.#shareOf(this.#limit);
    const isBack = report !== undefined && this.#wasAway;
    const question = { limit, maxLimit, interactive, background, nextNumber, share, isBack };
    const answer = await this.#exchange.ask({ ...question, report: report ?? emptyReport() }, (late) => {
      for (const token of this.#accept(late, askedAt, nextNumber))
        this.#leases.giveBack(token.lease, askedAt);
      this.#pumpSoon();
    });
    if (!report) return;
    this.#options.availability.succeeded();
    this.#wasAway = false;
    this.#local?.end();
    this.#local = undefined;
    for (const token of this.#accept(answer, askedAt, nextNumber)) this.#held.add(token);
    const unmet = this.#wishes();
    this.#unmetInteractive = Math.min(interactive, unmet.interactive);
    const isUnheard = answer.askInMs === undefined || (unmet.interactive > 0 && interactive === 0);
    const now = this.#clock.now();
    this.#askAt = unmet.total > 0 && isUnheard ? now : now + (answer.askInMs ?? NEVER);
  }

  #accept(answer: Answer, askedAt: number, firstNumber: number) {
    const now = this.#clock.now();
    this.#limit = answer.limit;
    this.#announced = answer.announced ?? this.#options.limit;
    if (answer.pausedForMs > 0) this.#pauseUntil(now + answer.pausedForMs);
    return answer.grants.map(({ startsInMs, lane }, index) => {
      // The answer took time: counted from its arrival no request is early, counted from the question none is late.
      const startsAt = startsInMs === 0 ? now : now + startsInMs;
      const sendBy = askedAt + startsInMs + SEND_WITHIN_MS;
      const lease = this.#leases.add({ number: firstNumber + index, now, startsAt, sendBy });
      return { lease, lane, tokensLeft: answer.free };
    });
  }

  #fail(error: unknown, askedAt: number): void {
    const { policy, availability, maxUplinkMs, timeoutMs, bucket } = this.#options;
    availability.failed(error);
    this.#wasAway = true;
    this.#askAt = NEVER;
    if (policy === 'reject') {
      const message = 'The rate limiter cannot reach Redis, so nothing was sent';
      this.#queue.rejectAll(() => new ConnectionError(message, { cause: error, neverSent: true }));
      return;
    }
    this.#local?.failedAgain(askedAt);
    this.#local ??= new LocalShare({
      ...{ bucket, maxUplinkMs, timeoutMs, clock: this.#clock },
      limit: this.#shareOf(this.#limit),
      failedAskAt: askedAt,
      pausedUntil: this.#pausedUntil,
    });
  }

  /** What this process may use of a limit by itself. */
  #shareOf(limit: number): number {
    return Math.max(1, Math.floor(limit / this.#options.processes));
  }

  #grantLocally(ticket: Ticket): boolean {
    const call = this.#local ? this.#queue.take() : undefined;
    if (call) call.resolve(this.#ticket(this.#leases.addLocal(this.#clock.now()), ticket.tokensLeft, ticket));
    this.#pumpSoon();
    return call !== undefined;
  }

  #ticket(lease: Lease, tokensLeft: number, local?: Ticket): Ticket {
    return ticketOf({
      ...{ lease, tokensLeft, local, leases: this.#leases, clock: this.#clock },
      knownLimit: () => this.#announced,
      shareOf: (limit) => this.#shareOf(limit),
      onPause: (until) => this.#pauseUntil(until),
      onChange: () => this.#pumpSoon(),
    });
  }

  /** Every answer tells of the same pause, a little later by its way; that must not move it. */
  #pauseUntil(until: number): void {
    if (until > this.#pausedUntil + SAME_PAUSE_MS) this.#pausedUntil = until;
  }

  /** One timer for everything that has a time. */
  #arm(now: number): void {
    const isWaiting = this.#queue.size > 0;
    const opensAt = (isWaiting && this.#local?.opensAt) || NEVER;
    const wakeAt = Math.min(
      this.#held.nextStart,
      this.#queue.earliestDeadline,
      this.#talkAt(),
      this.#leases.renewAt,
      opensAt > now ? opensAt : NEVER,
    );
    // News alone is no reason for a program to go on: without it the token only comes back later.
    this.#timer.set(wakeAt, isWaiting);
  }
}

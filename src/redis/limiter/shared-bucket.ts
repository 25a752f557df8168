import type { Clock } from '../../common/timing.ts';
import { ConnectionError } from '../../errors.ts';
import type { BucketSnapshot, Ticket } from '../../limiter/limiter.ts';
import { LongPauseError } from '../../limiter/long-pause-error.ts';
import { pauseEnd } from '../../limiter/pause.ts';
import { isTooLong } from '../../limiter/wait-queue.ts';
import { CallQueue, type QueuedCall, type WaitOptions } from './call-queue.ts';
import { EndpointView } from './endpoint-view.ts';
import { type Answer, Exchange } from './exchange.ts';
import { HeldTokens } from './held-tokens.ts';
import { emptyReport, type Lease, LeaseBook, type Report } from './lease-book.ts';
import { LocalShare } from './local-share.ts';
import type { SharedBucketOptions } from './shared-bucket-options.ts';
import { ticketOf } from './ticket.ts';
import { SEND_WITHIN_MS } from './timing.ts';
import { WakeTimer } from './wake-timer.ts';
import { AskTime, NO_WISHES, type Wishes, wishesOf } from './wishes.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** This process's side of one bucket in Redis: who waits here, which tokens are ours, and when to talk with Redis. */
export class SharedBucket {
  readonly #options: SharedBucketOptions;
  readonly #clock: Clock;
  readonly #exchange: Exchange;
  readonly #queue: CallQueue;
  readonly #leases: LeaseBook;
  readonly #held = new HeldTokens();
  readonly #endpoint: EndpointView;
  #local: LocalShare | undefined;
  readonly #askTime = new AskTime();
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
    this.#endpoint = new EndpointView(options);
    const { maxQueue, clock, aborts } = options;
    this.#queue = new CallQueue({ name: options.bucket.endpoint, maxQueue, clock, aborts });
  }

  /** Grants a token to the call now or later, or rejects it. */
  enqueue(options: WaitOptions): void {
    const now = this.#clock.now();
    const pausedForMs = this.#endpoint.pausedUntil - now;
    if (isTooLong(pausedForMs, options)) {
      options.reject(new LongPauseError(pausedForMs));
      return;
    }
    const isFirst = this.#wishes().total === 0;
    const mustWait = this.#askTime.isToCome(now) && !this.#isTalking;
    this.#queue.append(this, options, this.#local !== undefined || mustWait);
    const isNews = isFirst || this.#askTime.isNews(options.priority);
    if (isNews && this.#wishes().total > 0 && !this.#local) this.#askTime.setTo(now);
    this.#pumpSoon();
  }

  /** Takes a waiting call out of the queue and rejects it. */
  giveUp(call: QueuedCall, reason: unknown): void {
    this.#queue.remove(call, reason);
    this.#leaveTurn(this.#clock.now());
    this.#pumpSoon();
  }

  snapshot(): BucketSnapshot {
    return {
      limit: this.#endpoint.limit,
      inUse: this.#leases.inUse(this.#clock.now()),
      queued: this.#queue.size,
      pausedUntil: pauseEnd(this.#endpoint.pausedUntil, this.#clock),
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
    if (this.#queue.expire(now) > 0) this.#leaveTurn(now);
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
    const unwanted = this.#held.takeUnwanted(this.#queue.size, this.#endpoint.usableFrom);
    for (const { lease } of unwanted) this.#leases.giveBack(lease, now);
    for (let token = this.#held.takeStarted(now); token; token = this.#held.takeStarted(now)) {
      const call = this.#queue.take();
      if (call) call.resolve(this.#ticket(token.lease, token.tokensLeft));
      else this.#leases.giveBack(token.lease, now);
    }
  }

  /** When the last call has given up, others would wait for our turn in vain. */
  #leaveTurn(now: number): void {
    const isInTurn = this.#askTime.at !== NEVER && !this.#local;
    if (isInTurn && this.#queue.size === 0) this.#askTime.setTo(now);
  }

  #wishes(): Wishes {
    return wishesOf(this.#queue, this.#held);
  }

  #talkAt(): number {
    if (this.#isTalking) return NEVER;
    if (this.#local) return this.#queue.size > 0 ? this.#local.probeAt : NEVER;
    return Math.min(this.#askTime.at, this.#leases.reportBy);
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
      if (report) this.#leases.putBack(report, this.#clock.now());
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
    const wishes = report ? this.#wishes() : NO_WISHES;
    const nextNumber = this.#leases.nextNumber;
    this.#leases.setAside(wishes.total);
    const share = this.#endpoint.share;
    const isBack = report !== undefined && this.#wasAway;
    const question = { wishes, nextNumber, share, isBack, report: report ?? emptyReport() };
    const answer = await this.#exchange.ask(question, (late) => {
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
    this.#askTime.heard(wishes, this.#wishes(), answer, this.#clock.now());
  }

  #accept(answer: Answer, askedAt: number, firstNumber: number) {
    const now = this.#clock.now();
    this.#endpoint.hearLimit(answer.limit, answer.announced);
    // Counted from the question, so that no token that starts at the end of the pause seems to be too early.
    if (answer.pausedForMs > 0) this.#pauseUntil(askedAt + answer.pausedForMs);
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
    this.#askTime.stop();
    if (policy === 'reject') {
      const message = 'The rate limiter cannot reach Redis, so nothing was sent';
      this.#queue.rejectAll(() => new ConnectionError(message, { cause: error, neverSent: true }));
      return;
    }
    this.#local?.failedAgain(askedAt);
    this.#local ??= new LocalShare({
      ...{ bucket, maxUplinkMs, timeoutMs, clock: this.#clock },
      limit: this.#endpoint.share,
      failedAskAt: askedAt,
      pausedUntil: this.#endpoint.pausedUntil,
    });
  }

  #grantLocally(ticket: Ticket): boolean {
    const call = this.#local ? this.#queue.take() : undefined;
    if (call) call.resolve(this.#ticket(this.#leases.addLocal(this.#clock.now()), ticket.tokensLeft, ticket));
    this.#pumpSoon();
    return call !== undefined;
  }

  #ticket(lease: Lease, tokensLeft: number, local?: Ticket): Ticket {
    return ticketOf({
      ...{ lease, tokensLeft, local, leases: this.#leases, endpoint: this.#endpoint, clock: this.#clock },
      onPause: (until) => this.#pauseUntil(until),
      onChange: () => this.#pumpSoon(),
    });
  }

  #pauseUntil(until: number): void {
    if (this.#endpoint.pauseUntil(until)) this.#queue.refuseImpatient(until - this.#clock.now());
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

import { ConnectionError } from '../errors.ts';
import type { AcquireOptions, BucketSnapshot, RateLimitFeedback } from '../limiter/limiter.ts';
import { type Lease, LeaseBook } from './lease-book.ts';
import { HORIZON_MS, SEND_WITHIN_MS } from './limiter-script.ts';
import { SyncChannel, type SyncResponse } from './limiter-sync.ts';
import {
  CallQueue,
  createPermit,
  isPlausibleLimit,
  type LimiterSettings,
  Pace,
  pauseEnd,
  pauseMsOf,
  ReschedulableTimer,
  type TokenRequest,
} from './old-allowance.ts';
import type { ScriptRunner } from './redis-client.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** How often Redis is tried while it is down and calls wait. */
const PROBE_EVERY_MS = 250;

/** Two ends of a pause that are no farther apart are one: every reply tells of it, and no two are equally long on their way. */
const SAME_PAUSE_MS = 20;

/** What a shared bucket is made of; see `RedisLimiterOptions`. */
export interface SharedBucketOptions extends LimiterSettings, Pick<AcquireOptions, 'bucket' | 'limit'> {
  readonly scripts: ScriptRunner;
  readonly keyPrefix: string;
  readonly processId: string;
  readonly processes: number;
  readonly timeoutMs: number;
  /** Whether this process goes on by itself without Redis; else its calls are rejected. */
  readonly isLocalAllowed: boolean;
  readonly availability: { failed(error: unknown): void; succeeded(): void };
  readonly maxLimit: number;
}

/** Calls that want a token. */
interface Demand {
  readonly interactive: number;
  readonly total: number;
}

const NO_DEMAND: Demand = { interactive: 0, total: 0 };

/** What waiting calls want beyond the tokens that are there for them, which interactive calls take first. */
function unmetDemand({ interactive, total }: Demand, tokens: number): Demand {
  return { interactive: Math.max(0, interactive - tokens), total: Math.max(0, total - tokens) };
}

/**
 * This process's side of one bucket in Redis: who waits here, which tokens are ours, and when to sync with Redis.
 *
 * Without Redis the process counts its own tokens against its share of the limit.
 */
export class SharedBucket {
  readonly #options: SharedBucketOptions;
  readonly #channel: SyncChannel;
  readonly #queue: CallQueue;
  readonly #timer: ReschedulableTimer;
  readonly #leases: LeaseBook;
  /** Tokens that Redis gave out before they come back, in the order of their times. */
  #held: Lease[] = [];

  #limit: number;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** The announced limit that Redis knows. */
  #announced: number;

  /** The demand that Redis knows and has no tokens for, and when it wants to be asked again. */
  #knownDemand = NO_DEMAND;
  #askAt = NEVER;
  #isSyncing = false;
  #isPumpDue = false;

  /** While Redis is away: when it was asked last in vain, and when every token is back that it gave to any process. */
  #outage: { readonly askedAt: number; readonly opensAt: number } | undefined;
  /** Only for this process's own share; Redis keeps the pace of all. */
  readonly #pace = new Pace();
  #lastLocalGrantAt = Number.NEGATIVE_INFINITY;

  constructor(options: SharedBucketOptions) {
    this.#options = options;
    this.#channel = new SyncChannel(options);
    this.#timer = new ReschedulableTimer(options.clock, () => this.#pump());
    this.#leases = new LeaseBook(options.maxUplinkMs);
    const name = options.bucket.endpoint;
    this.#queue = new CallQueue({ ...options, name, onAbort: () => this.#pumpSoon() });
    this.#limit = Math.min(options.limit, options.maxLimit);
    this.#announced = options.limit;
  }

  /** Grants a token to the call now or later, or rejects it. */
  enqueue(request: TokenRequest): void {
    this.#queue.append(request, this.#pausedUntil - this.#now());
    this.#pumpSoon();
  }

  snapshot(): BucketSnapshot {
    return {
      limit: this.#limit,
      inUse: this.#leases.inUse(this.#now()),
      queued: this.#queue.size,
      pausedUntil: pauseEnd(this.#pausedUntil, this.#options.clock),
    };
  }

  /** True when this process forgets nothing that matters with the bucket. */
  isIdle(): boolean {
    const { inUse, queued, pausedUntil } = this.snapshot();
    return inUse === 0 && queued === 0 && pausedUntil === null && !this.#isSyncing;
  }

  send(lease: Lease): void {
    this.#leases.send(lease, this.#now());
    this.#pumpSoon();
  }

  report(lease: Lease, feedback: RateLimitFeedback): void {
    const now = this.#now();
    const { announcedLimit } = feedback;
    const isPlausible = isPlausibleLimit(announcedLimit, this.#options.limit);
    const newLimit = isPlausible && announcedLimit !== this.#announced ? announcedLimit : undefined;
    if (!this.#leases.report(lease, feedback, newLimit, now)) return;
    if (newLimit !== undefined && this.#outage) this.#limit = Math.min(newLimit, this.#options.maxLimit);
    if (feedback.status === 429) {
      this.#pauseUntil(now + pauseMsOf(feedback));
      this.#pace.refused(lease.sentAt, now);
    }
    this.#pumpSoon();
  }

  cancel(lease: Lease): void {
    this.#leases.cancel(lease, this.#now());
    this.#pumpSoon();
  }

  #now(): number {
    return this.#options.clock.now();
  }

  #pauseUntil(until: number): void {
    if (until <= this.#pausedUntil + SAME_PAUSE_MS) return;
    this.#pausedUntil = until;
    this.#queue.rejectImpatient(until - this.#now());
  }

  /** What this process may use of the limit by itself. */
  get #share(): number {
    return Math.max(1, Math.floor(this.#limit / this.#options.processes));
  }

  get #demand(): Demand {
    const { interactive, size: total } = this.#queue;
    return unmetDemand({ interactive, total }, this.#held.length);
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
    const now = this.#now();
    this.#grantHeld(now);
    this.#grantLocally(now);
    this.#queue.rejectExpired(now);
    this.#leases.renew(now);
    if (!this.#isSyncing && this.#syncAt(now) <= now) void this.#sync();
    // While Redis is being asked, a call may turn out not to have to wait.
    if (!this.#isSyncing || this.#outage) this.#queue.rejectExcess();
    this.#arm(now);
  }

  /** Gives every token whose time has come to a call, and those back that nobody wants or that start within a pause. */
  #grantHeld(now: number): void {
    const held = this.#held;
    this.#held = [];
    for (const lease of held) {
      const isWanted = this.#queue.size > this.#held.length;
      const isUsable = lease.startsAt >= this.#pausedUntil - SAME_PAUSE_MS;
      if (isWanted && isUsable && lease.startsAt > now) this.#held.push(lease);
      else if (isWanted && isUsable) this.#grant(lease, now);
      else this.#leases.cancel(lease, now);
    }
  }

  #grant(lease: Lease, now: number): void {
    const call = this.#queue.take(now, 1, 0);
    if (call) call.resolve(createPermit(this, lease, lease.tokensLeft));
    else this.#leases.cancel(lease, now);
  }

  #grantLocally(now: number): void {
    while (this.#localGrantAt(now) <= now) {
      this.#lastLocalGrantAt = now;
      const tokensLeft = this.#share - this.#leases.inUse(now) - 1;
      this.#grant(this.#leases.addLocal(now, tokensLeft), now);
    }
  }

  /** When this process may next grant a token of its own share; never while Redis may be there or nobody waits. */
  #localGrantAt(now: number): number {
    const { isLocalAllowed, timeoutMs } = this.#options;
    if (!this.#outage || !isLocalAllowed || this.#queue.size === 0) return NEVER;
    // Who has not looked for long may find Redis back and the others at the full limit: look first.
    if (now - this.#outage.askedAt > 2 * timeoutMs) return NEVER;
    const tokenAt = this.#leases.inUse(now) < this.#share ? now : this.#leases.nextFreeAt;
    const spacedUntil = this.#lastLocalGrantAt + this.#pace.spacingMs(this.#share, now);
    return Math.max(this.#outage.opensAt, this.#pausedUntil, tokenAt, spacedUntil);
  }

  #syncAt(now: number): number {
    if (this.#outage) {
      if (this.#queue.size === 0) return NEVER;
      return this.#options.isLocalAllowed ? this.#outage.askedAt + PROBE_EVERY_MS : now;
    }
    const [{ interactive, total }, known] = [this.#demand, this.#knownDemand];
    // The first call needs a turn, an interactive one may have the reserve, and nobody should wait for a turn in vain.
    const isNew = total > 0 !== known.total > 0 || (interactive > 0 && known.interactive === 0);
    return isNew ? now : Math.min(this.#askAt, this.#leases.syncBy);
  }

  async #sync(): Promise<void> {
    this.#isSyncing = true;
    const askedAt = this.#now();
    try {
      if (this.#outage) await this.#channel.probe();
      await this.#sendUpdate();
    } catch (error) {
      this.#noteOutage(error, askedAt);
    }
    this.#isSyncing = false;
    this.#pump();
  }

  async #sendUpdate(): Promise<void> {
    const { processId, limit, maxLimit, reserve, maxUplinkMs, availability } = this.#options;
    const askedAt = this.#now();
    const demand = this.#demand;
    const recovers = this.#outage !== undefined;
    const firstNumber = this.#leases.takeNumbers(demand.total);
    const { confirm, ...update } = this.#leases.takeUpdate(askedAt, recovers);
    const response = await this.#channel.sync({
      ...{ process: processId, limit, reserve, maxUplinkMs, firstNumber, recovers, share: this.#share },
      maxLimit: Number.isFinite(maxLimit) ? maxLimit : undefined,
      interactive: demand.interactive,
      background: demand.total - demand.interactive,
      ...update,
    });
    confirm();
    availability.succeeded();
    this.#outage = undefined;
    this.#accept(response, demand, askedAt, firstNumber);
  }

  #accept(response: SyncResponse, asked: Demand, askedAt: number, firstNumber: number): void {
    const now = this.#now();
    const { askInMs, starts, pausedForMs, free } = response;
    this.#limit = response.limit;
    this.#announced = response.announced ?? this.#options.limit;
    // Counted from the request, so that no token that starts at the end of the pause seems to be too early.
    if (pausedForMs > 0) this.#pauseUntil(askedAt + pausedForMs);
    for (const [index, startsInMs] of starts.entries()) {
      // The reply took time: counted from its arrival no request is early, counted from the request none is late.
      const [startsAt, sendBy] = [now + startsInMs, askedAt + startsInMs + SEND_WITHIN_MS];
      const grant = { number: firstNumber + index, startsAt, sendBy, tokensLeft: free };
      this.#held.push(this.#leases.add(now, grant));
    }
    this.#held.sort((one, other) => one.startsAt - other.startsAt);
    this.#knownDemand = unmetDemand(asked, starts.length);
    this.#askAt = askInMs === undefined ? NEVER : now + askInMs;
  }

  #noteOutage(error: unknown, askedAt: number): void {
    const { isLocalAllowed, availability } = this.#options;
    availability.failed(error);
    const opensAt = this.#outage?.opensAt ?? askedAt + HORIZON_MS + this.#leases.longestMs;
    this.#outage = { askedAt, opensAt };
    this.#knownDemand = NO_DEMAND;
    this.#askAt = NEVER;
    // Redis hears everything once it is back.
    this.#leases.syncBy = NEVER;
    if (isLocalAllowed) return;
    const message = 'The rate limiter cannot reach Redis, so nothing was sent';
    this.#queue.rejectAll(() => new ConnectionError(message, { cause: error, neverSent: true }));
  }

  /** One timer for everything that has a time. */
  #arm(now: number): void {
    const wakeAt = Math.min(
      this.#held[0]?.startsAt ?? NEVER,
      this.#queue.earliestDeadline,
      this.#isSyncing ? NEVER : this.#syncAt(now),
      this.#localGrantAt(now),
      this.#leases.renewAt,
    );
    // An update alone is no reason for a program to go on: without it the token only comes back later.
    this.#timer.set(wakeAt, this.#queue.size > 0);
  }
}

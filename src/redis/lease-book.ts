import type { RateLimitFeedback } from '../limiter/limiter.ts';
import { SEND_WITHIN_MS } from './limiter-script.ts';
import type { SyncRequest } from './limiter-sync.ts';
import { newToken, pauseMsOf, type Token, TokenPool } from './old-allowance.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** By how much a lease grows that was granted and is not sent yet, and how long before its end. */
const RENEW_MS = 1_000;
const RENEW_AHEAD_MS = 30;

/** How long a response may wait for others until Redis hears of it; its token is out for a window anyway. */
const SYNC_WITHIN_MS = 300;

/** A token of this process. Only its book writes to it. */
export interface Lease extends Token {
  readonly number: number;
  /** When its request may be sent. */
  readonly startsAt: number;
  /** Redis keeps the token out long enough for a request that is sent until then. */
  sendBy: number;
  readonly tokensLeft: number;
}

/** What one sync says, until Redis has heard it. */
interface Update extends Pick<SyncRequest, 'leases' | 'refusal' | 'announcement'> {
  /** Redis heard it. What came up meanwhile is still to be said. */
  confirm(): void;
}

/** The leases of one process on one bucket, and what Redis has yet to hear of them. */
export class LeaseBook {
  readonly #pool: TokenPool<Lease>;
  #nextNumber = 0;
  #changed = new Set<Lease>();
  #refusal: { readonly sentAt: number; readonly pausedUntil: number } | undefined;
  #announcement: { readonly sentAt: number; readonly limit: number } | undefined;
  /** When Redis must hear of the changes at the latest; Infinity when there are none. */
  syncBy = NEVER;

  /** @param maxUplinkMs - longest time in milliseconds from sending a request to the service counting it */
  constructor(maxUplinkMs: number) {
    this.#pool = new TokenPool(maxUplinkMs);
  }

  get longestMs(): number {
    return this.#pool.longestMs;
  }

  /** How many tokens this process has out. */
  inUse(now: number): number {
    this.#pool.collect(now);
    return this.#pool.inUse;
  }

  get nextFreeAt(): number {
    return this.#pool.nextFreeAt;
  }

  /** When the first lease needs to be renewed because its request is still not sent. */
  get renewAt(): number {
    let earliest = NEVER;
    for (const { state, sendBy } of this.#pool.underWay) {
      if (state === 'granted') earliest = Math.min(earliest, sendBy - RENEW_AHEAD_MS);
    }
    return earliest;
  }

  /** Sets numbers aside for the grants of one sync, so that those of a reply that never arrives are not given twice. */
  takeNumbers(count: number): number {
    this.#nextNumber += count;
    return this.#nextNumber - count;
  }

  add(now: number, grant: Pick<Lease, 'number' | 'startsAt' | 'sendBy' | 'tokensLeft'>): Lease {
    return this.#pool.grant({ ...newToken(now), ...grant });
  }

  /** A token of this process's own share, while Redis is away, which hears of it as soon as it is back. */
  addLocal(now: number, tokensLeft: number): Lease {
    const [number, sendBy] = [this.takeNumbers(1), now + SEND_WITHIN_MS];
    const lease = this.add(now, { number, startsAt: now, sendBy, tokensLeft });
    this.#noteChange(lease, now);
    return lease;
  }

  send(lease: Lease, now: number): void {
    if (this.#pool.send(lease, now) && now > lease.sendBy) this.#noteChange(lease, now);
  }

  /**
   * @param newLimit - the limit that the answer announced, if Redis does not know it
   * @returns false when the request was not sent or is answered already
   */
  report(lease: Lease, feedback: RateLimitFeedback, newLimit: number | undefined, now: number): boolean {
    if (!this.#pool.report(lease, now)) return false;
    const { sentAt } = lease;
    const isRefused = feedback.status === 429;
    if (isRefused) {
      const pausedUntil = now + pauseMsOf(feedback);
      this.#refusal = {
        sentAt: Math.max(sentAt, this.#refusal?.sentAt ?? sentAt),
        pausedUntil: Math.max(pausedUntil, this.#refusal?.pausedUntil ?? pausedUntil),
      };
    }
    // Answers overtake each other; an older request's must not bring an older limit back.
    const isLatest = sentAt >= (this.#announcement?.sentAt ?? sentAt);
    if (newLimit !== undefined && isLatest) this.#announcement = { sentAt, limit: newLimit };
    // What concerns the whole endpoint must be known at once.
    const isUrgent = isRefused || (newLimit !== undefined && isLatest);
    this.#noteChange(lease, isUrgent ? now : now + SYNC_WITHIN_MS);
    return true;
  }

  /** Nothing was sent: the token is free at once, or when it would have been. */
  cancel(lease: Lease, now: number): void {
    if (!this.#pool.cancel(lease)) return;
    lease.freeAt = lease.startsAt;
    this.#noteChange(lease, now);
  }

  /** Holds the tokens whose requests are still not sent, until the pool forgets them. */
  renew(now: number): void {
    this.#pool.collect(now);
    for (const lease of this.#pool.underWay) {
      if (lease.state !== 'granted' || lease.sendBy - RENEW_AHEAD_MS > now) continue;
      lease.sendBy = now + RENEW_MS;
      this.#noteChange(lease, now);
    }
  }

  /**
   * What Redis should hear now.
   *
   * @param everything - after an outage Redis may have lost all, or only our words
   */
  takeUpdate(now: number, everything: boolean): Update {
    const leases = everything ? this.#pool.all : [...this.#changed];
    const [refusal, announcement] = [this.#refusal, this.#announcement];
    this.#changed.clear();
    this.syncBy = NEVER;
    return {
      leases: leases.map((lease) => ({
        number: lease.number,
        backInMs: Math.max(0, Math.ceil(this.#backAt(lease) - now)),
        isExact: lease.state === 'settled' || lease.state === 'cancelled',
      })),
      refusal: refusal && {
        pauseMs: Math.max(0, Math.ceil(refusal.pausedUntil - now)),
        sentMsAgo: Math.floor(now - refusal.sentAt),
      },
      announcement: announcement && {
        limit: announcement.limit,
        sentMsAgo: Math.floor(now - announcement.sentAt),
      },
      confirm: () => {
        if (this.#refusal === refusal) this.#refusal = undefined;
        if (this.#announcement === announcement) this.#announcement = undefined;
      },
    };
  }

  #backAt(lease: Lease): number {
    return lease.state === 'granted' ? lease.sendBy + this.#pool.longestMs : lease.freeAt;
  }

  #noteChange(lease: Lease, by: number): void {
    this.#changed.add(lease);
    this.syncBy = Math.min(this.syncBy, by);
  }
}

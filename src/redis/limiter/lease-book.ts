import type { Settlement } from '../../limiter/limiter.ts';
import { pauseMsOf } from '../../limiter/pause.ts';
import { UNSENT_LEASE_MS } from '../../limiter/token-pool.ts';
import { RENEW_AHEAD_MS, RENEW_MS, REPORT_WITHIN_MS, RETURN_MS, SEND_WITHIN_MS } from './timing.ts';

/** One token that this process holds. Only the book writes to it; times are of this process's monotonic clock. */
export interface Lease {
  readonly number: number;
  readonly grantedAt: number;
  /** When its request may be sent. */
  readonly startsAt: number;
  state: 'granted' | 'sent' | 'settled' | 'returned';
  sentAt: number;
  /** Redis keeps the token out long enough for a request that is sent until then. */
  sendBy: number;
  /** When the token comes back at the latest. */
  backAt: number;
}

/** What Redis has not been told yet about one lease: it is `back` by then if known at all, or to `hold` until then. */
export interface LeaseNews {
  readonly kind: 'back' | 'hold';
  readonly number: number;
  readonly backAt: number;
}

/** What answers told that concerns the whole endpoint. */
export interface EndpointNews {
  pausedUntil: number | undefined;
  refusedSentAt: number;
  announced: number | undefined;
  announcedSentAt: number;
}

/** Everything that the next exchange tells Redis. */
export interface Report {
  readonly leases: readonly LeaseNews[];
  readonly endpoint: EndpointNews;
}

/** The leases of one process on one bucket, and what Redis has yet to hear about them. */
export class LeaseBook {
  readonly #longestMs: number;
  readonly #out = new Map<number, Lease>();
  readonly #unsent = new Set<Lease>();
  #news = new Map<number, LeaseNews>();
  #endpoint = noEndpointNews();
  #reportBy = Number.POSITIVE_INFINITY;
  #nextNumber = 0;

  /** @param maxUplinkMs - longest time in milliseconds from sending a request to the service counting it */
  constructor(maxUplinkMs: number) {
    this.#longestMs = maxUplinkMs + RETURN_MS;
  }

  /** When Redis must hear the news at the latest; Infinity when there are none. */
  get reportBy(): number {
    return this.#reportBy;
  }

  /** When the first lease needs to be renewed because its request is still not sent. */
  get renewAt(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const lease of this.#unsent) earliest = Math.min(earliest, lease.sendBy - RENEW_AHEAD_MS);
    return earliest;
  }

  get nextNumber(): number {
    return this.#nextNumber;
  }

  /** Sets numbers aside for the grants of one exchange, so that a reply that comes too late names its leases. */
  setAside(count: number): void {
    this.#nextNumber += count;
  }

  /** @param sendBy - until when the request may be sent without telling Redis */
  add(grant: { number: number; now: number; startsAt: number; sendBy: number }): Lease {
    const { number, now, startsAt, sendBy } = grant;
    const lease: Lease = {
      number,
      grantedAt: now,
      startsAt,
      state: 'granted',
      sentAt: startsAt,
      sendBy,
      backAt: sendBy + this.#longestMs,
    };
    this.#out.set(number, lease);
    this.#unsent.add(lease);
    return lease;
  }

  /** A token of this process's own share, while Redis is down; Redis hears of it later. */
  addLocal(now: number): Lease {
    const number = this.#nextNumber;
    this.#nextNumber += 1;
    return this.add({ number, now, startsAt: now, sendBy: now + SEND_WITHIN_MS });
  }

  send(lease: Lease, now: number): void {
    if (lease.state !== 'granted') return;
    lease.state = 'sent';
    lease.sentAt = now;
    lease.backAt = now + this.#longestMs;
    this.#unsent.delete(lease);
    this.#out.set(lease.number, lease);
    if (now > lease.sendBy) this.#tell('hold', lease, now);
  }

  /** @param isNewLimit - whether Redis does not know the limit that the answer announced */
  settle(lease: Lease, settlement: Settlement, now: number, isNewLimit: boolean): void {
    if (lease.state !== 'sent') return;
    lease.state = 'settled';
    lease.backAt = Math.min(lease.backAt, now + RETURN_MS);
    const isRefused = settlement.status === 429;
    const { announcedLimit: announced } = settlement;
    const isLatestLimit = isNewLimit && lease.sentAt >= this.#endpoint.announcedSentAt;
    if (isLatestLimit) {
      this.#endpoint.announced = announced;
      this.#endpoint.announcedSentAt = lease.sentAt;
    }
    if (isRefused) {
      this.#endpoint.pausedUntil = Math.max(this.#endpoint.pausedUntil ?? 0, now + pauseMsOf(settlement));
      this.#endpoint.refusedSentAt = Math.max(this.#endpoint.refusedSentAt, lease.sentAt);
    }
    // What concerns the whole endpoint must be known at once.
    this.#tell('back', lease, isRefused || isLatestLimit ? now : now + REPORT_WITHIN_MS);
  }

  /** Nothing was sent: the token is free at once, or when it would have been. */
  giveBack(lease: Lease, now: number): void {
    if (lease.state !== 'granted') return;
    lease.state = 'returned';
    lease.backAt = lease.startsAt;
    this.#unsent.delete(lease);
    this.#out.delete(lease.number);
    this.#tell('back', lease, now);
  }

  /** Holds the leases whose requests are still not sent, except those that were forgotten for a minute. */
  renew(now: number): void {
    for (const lease of this.#unsent) {
      if (lease.sendBy - RENEW_AHEAD_MS > now) continue;
      if (now - lease.grantedAt >= UNSENT_LEASE_MS) {
        this.#unsent.delete(lease);
        continue;
      }
      lease.sendBy = now + RENEW_MS;
      lease.backAt = lease.sendBy + this.#longestMs;
      this.#tell('hold', lease, now);
    }
  }

  /** How many tokens this process has out. */
  inUse(now: number): number {
    this.#forgetReturned(now);
    return this.#out.size;
  }

  /** Hands the news over; `putBack` takes them again if Redis does not hear them. */
  takeNews(now: number): Report {
    this.#forgetReturned(now);
    const report = { leases: [...this.#news.values()], endpoint: this.#endpoint };
    this.#news = new Map();
    this.#endpoint = noEndpointNews();
    this.#reportBy = Number.POSITIVE_INFINITY;
    return report;
  }

  /** All that Redis must know again after an outage, in which it may have lost everything or only our words. */
  takeAll(now: number): Report {
    const { leases, endpoint } = this.takeNews(now);
    const returned = leases.filter(({ kind }) => kind === 'back');
    const out = [...this.#out.values()].map(
      ({ number, backAt }): LeaseNews => ({ kind: 'hold', number, backAt }),
    );
    // In this order: what Redis still knows is settled first, and then not held any longer than that.
    return { leases: [...returned, ...out], endpoint };
  }

  putBack({ leases, endpoint }: Report, now: number): void {
    for (const news of leases) {
      if (news.backAt > now && !this.#news.has(news.number)) this.#news.set(news.number, news);
    }
    const newer = this.#endpoint;
    this.#endpoint = {
      pausedUntil: latest(newer.pausedUntil, endpoint.pausedUntil),
      refusedSentAt: Math.max(newer.refusedSentAt, endpoint.refusedSentAt),
      announced: newer.announced ?? endpoint.announced,
      announcedSentAt: Math.max(newer.announcedSentAt, endpoint.announcedSentAt),
    };
    // News of the endpoint alone can wait for the next call: nobody else is served better by trying for ever.
    if (this.#news.size > 0) this.#reportBy = Math.min(this.#reportBy, now + REPORT_WITHIN_MS);
  }

  #tell(kind: LeaseNews['kind'], { number, backAt }: Lease, by: number): void {
    this.#news.set(number, { kind, number, backAt });
    this.#reportBy = Math.min(this.#reportBy, by);
  }

  #forgetReturned(now: number): void {
    for (const [number, lease] of this.#out) {
      if (lease.backAt <= now && !this.#unsent.has(lease)) this.#out.delete(number);
    }
  }
}

/** A report that says nothing. */
export function emptyReport(): Report {
  return { leases: [], endpoint: noEndpointNews() };
}

function noEndpointNews(): EndpointNews {
  return {
    pausedUntil: undefined,
    refusedSentAt: Number.NEGATIVE_INFINITY,
    announced: undefined,
    announcedSentAt: Number.NEGATIVE_INFINITY,
  };
}

function latest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}

// Specification: service.md 8

import type { Clock } from '../common/clock.ts';
import type { Permit, RateLimitFeedback } from './limiter.ts';

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

/** From this limit on the first calls leave in two halves. */
const HALVED_FROM_LIMIT = 10;

/** Responses that come sooner can be older than the first request of somebody who began at the same moment. */
const QUICK_MS = 250;

/** The part of a window over which grants are spread while others are there. */
const SPREAD_OVER = 0.8;

/** How long others are taken to use what they used: through the pause of one second that follows a refusal. */
const OTHERS_STAY_MS = 3_000;

/**
 * How many tokens may be out beside the requests of others who use the same account.
 *
 * What a response says is left, plus those requests of ours that the service can have counted, is what there is for us. Less
 * than the limit means that others use the rest; a window that our own requests filled never looks like that. The least of
 * three seconds counts, since others hold what they use, and then half of what lay idle all that time is taken. Grants are
 * spread meanwhile: a burst would see one moment of the service's window only, and others may use the rest of it.
 *
 * Who starts at the same moment as others knows nothing of them yet, so half of the limit leaves first. The rest follows when
 * that half is answered; after quick responses one more request goes ahead, to see who came meanwhile.
 */
export class Room {
  /** Infinity while nobody else is noticed. */
  #tokens = Number.POSITIVE_INFINITY;
  /** The least that a response told of since `#tokens` was set. */
  #least = Number.POSITIVE_INFINITY;
  #openingRounds = 0;
  /** When others were noticed. */
  #sharedSince = Number.POSITIVE_INFINITY;
  /** When the number of tokens is looked at anew. */
  changesAt = Number.POSITIVE_INFINITY;

  constructor(limit: number, now: number) {
    if (limit < HALVED_FROM_LIMIT) return;
    this.#openingRounds = 2;
    this.#set(Math.ceil(limit / 2), now + WINDOW_MS);
  }

  /** How many tokens may be out. */
  tokens(limit: number, now: number): number {
    if (now >= this.changesAt) {
      const idle = Math.max(0, this.#least - this.#tokens);
      if (this.#openingRounds > 0 || this.#least >= limit) this.#useAll();
      else this.#set(this.#tokens + Math.floor(idle / 2), now + OTHERS_STAY_MS);
    }
    return Math.min(limit, this.#tokens);
  }

  /** A response told how many requests there are for us. */
  noteLeft(left: number, limit: number, now: number): void {
    this.#least = Math.min(this.#least, left);
    const tokens = Math.max(1, Math.min(left, this.#tokens));
    const isNew = tokens < this.#tokens || this.#openingRounds > 0;
    if (left >= limit || !isNew) return;
    this.#openingRounds = 0;
    this.#sharedSince = Math.min(this.#sharedSince, now);
    this.#set(tokens, now + OTHERS_STAY_MS);
  }

  /** Shortest time in milliseconds between two grants; in the first window the tokens that are left can go at once. */
  spacingMs(now: number): number {
    return now < this.#sharedSince + WINDOW_MS ? 0 : (WINDOW_MS * SPREAD_OVER) / this.#tokens;
  }

  /** Every request that left is answered. */
  noteAllAnswered(now: number): void {
    if (this.#openingRounds === 0) return;
    const wasQuick = now < this.changesAt - WINDOW_MS + QUICK_MS;
    this.#openingRounds -= 1;
    if (this.#openingRounds > 0 && wasQuick) this.#set(this.#tokens + 1, now + WINDOW_MS);
    else this.#useAll();
  }

  #useAll(): void {
    this.#openingRounds = 0;
    this.#sharedSince = Number.POSITIVE_INFINITY;
    this.#set(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  }

  #set(tokens: number, until: number): void {
    this.#tokens = tokens;
    this.#least = Number.POSITIVE_INFINITY;
    this.changesAt = until;
  }
}

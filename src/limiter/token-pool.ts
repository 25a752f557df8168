import { TokenLine } from './token-line.ts';

/** The length of the service's window in milliseconds (service.md 8: one second). */
export const WINDOW_MS = 1_000;

/** Kept on top of every window, because two machines never agree to the millisecond on how long a second is. */
export const GUARD_MS = 10;

/** How long a token stays with a caller who neither sends nor cancels. */
export const UNSENT_LEASE_MS = 60_000;

/** One token that is out. Only the pool writes to it. */
export interface Token {
  state: 'granted' | 'sent' | 'settled' | 'cancelled';
  sentAt: number;
  freeAt: number;
}

/**
 * The tokens of one bucket that are out, and when each comes back.
 *
 * The service counts a request somewhere between its sending and its answer. A token that is used again no earlier
 * than one window after the answer therefore puts at most one request into any window, wherever windows start.
 */
export class TokenPool {
  /** Whose time may come in any order: as many as there are requests under way. */
  readonly #underWay = new Set<Token>();
  /** Whose time comes in the order of the answers; so a thousand of them cost no more to look after than ten. */
  readonly #answered = new TokenLine();
  readonly #longestMs: number;

  /** @param maxUplinkMs - longest time in milliseconds from sending a request to the service counting it */
  constructor(maxUplinkMs: number) {
    this.#longestMs = WINDOW_MS + maxUplinkMs + GUARD_MS;
  }

  get inUse(): number {
    return this.#underWay.size + this.#answered.size;
  }

  /** When the first token that is out comes back; Infinity when none is out. */
  get nextFreeAt(): number {
    let earliest = this.#answered.first?.freeAt ?? Number.POSITIVE_INFINITY;
    for (const token of this.#underWay) earliest = Math.min(earliest, token.freeAt);
    return earliest;
  }

  /** Takes back every token whose time has come. */
  collect(now: number): void {
    for (const token of this.#underWay) if (token.freeAt <= now) this.#underWay.delete(token);
    while ((this.#answered.first?.freeAt ?? Number.POSITIVE_INFINITY) <= now) this.#answered.shift();
  }

  grant(now: number): Token {
    const token: Token = { state: 'granted', sentAt: now, freeAt: now + UNSENT_LEASE_MS };
    this.#underWay.add(token);
    return token;
  }

  /** Adds the token again if its lease ran out, even over the limit: the request counts, and later ones must wait. */
  send(token: Token, now: number): void {
    if (token.state !== 'granted') return;
    token.state = 'sent';
    token.sentAt = now;
    token.freeAt = now + this.#longestMs;
    this.#underWay.add(token);
  }

  settle(token: Token, now: number): void {
    if (token.state !== 'sent') return;
    token.state = 'settled';
    const freeAt = now + WINDOW_MS + GUARD_MS;
    // A late answer changes nothing, nor does one that comes when the token is back.
    if (freeAt >= token.freeAt) return;
    this.#underWay.delete(token);
    token.freeAt = freeAt;
    this.#answered.push(token);
  }

  cancel(token: Token): void {
    if (token.state !== 'granted') return;
    token.state = 'cancelled';
    this.#underWay.delete(token);
  }
}

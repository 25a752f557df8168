import type { Lease } from './lease-book.ts';

/** A token that is ours and waits for its time. */
export interface HeldToken {
  readonly lease: Lease;
  /** What kind of call it was asked for. */
  readonly lane: 'interactive' | 'background';
  readonly tokensLeft: number;
}

/** Tokens of this process that come back soon, in the order of their times. */
export class HeldTokens {
  #tokens: HeldToken[] = [];

  get nextStart(): number {
    return this.#tokens[0]?.lease.startsAt ?? Number.POSITIVE_INFINITY;
  }

  get interactive(): number {
    return this.#tokens.filter(({ lane }) => lane === 'interactive').length;
  }

  get size(): number {
    return this.#tokens.length;
  }

  add(token: HeldToken): void {
    this.#tokens.push(token);
    this.#tokens.sort((one, other) => one.lease.startsAt - other.lease.startsAt);
  }

  /** The first token, if its time has come. */
  takeStarted(now: number): HeldToken | undefined {
    return this.nextStart <= now ? this.#tokens.shift() : undefined;
  }

  /**
   * Tokens that nobody waits for, the latest first to go, and those that start too early.
   *
   * @param waiting - how many calls wait
   * @param usableFrom - a time before which no token may be used
   */
  takeUnwanted(waiting: number, usableFrom: number): HeldToken[] {
    const usable = this.#tokens.filter(({ lease }) => lease.startsAt >= usableFrom).slice(0, waiting);
    const unwanted = this.#tokens.filter((token) => !usable.includes(token));
    this.#tokens = usable;
    return unwanted;
  }
}

import type { Token } from './token-pool.ts';

/** Tokens in the order in which they come back: first in, first out, each step in constant time on average. */
export class TokenLine {
  #tokens: Token[] = [];
  #start = 0;

  get size(): number {
    return this.#tokens.length - this.#start;
  }

  get first(): Token | undefined {
    return this.#tokens[this.#start];
  }

  push(token: Token): void {
    this.#tokens.push(token);
  }

  shift(): void {
    this.#start += 1;
    if (this.#start * 2 < this.#tokens.length) return;
    this.#tokens = this.#tokens.slice(this.#start);
    this.#start = 0;
  }
}

import type { Priority } from '../../limiter/limiter.ts';
import type { CallQueue } from './call-queue.ts';
import type { Answer } from './exchange.ts';
import type { HeldTokens } from './held-tokens.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** How many tokens this process wants of Redis. */
export interface Wishes {
  readonly interactive: number;
  readonly background: number;
  readonly total: number;
}

export const NO_WISHES: Wishes = { interactive: 0, background: 0, total: 0 };

/** What the calls that wait want beyond the tokens that are ours already. */
export function wishesOf(queue: CallQueue, held: HeldTokens): Wishes {
  const total = Math.max(0, queue.size - held.size);
  const interactive = Math.min(total, Math.max(0, queue.interactive - held.interactive));
  return { interactive, background: total - interactive, total };
}

/** When the wishes of one bucket are next put to Redis: never while all are fulfilled. */
export class AskTime {
  #at = NEVER;
  /** Interactive calls that Redis knows of and has no token for. */
  #unmetInteractive = 0;

  get at(): number {
    return this.#at;
  }

  /** Whether Redis told when to ask again, and that time has not come. */
  isToCome(now: number): boolean {
    return this.#at !== NEVER && this.#at > now;
  }

  /** Whether one more such call is news to Redis: a background call leaves a reserve that an interactive one may have. */
  isNews(priority: Priority): boolean {
    return priority === 'interactive' && this.#unmetInteractive === 0;
  }

  setTo(now: number): void {
    this.#at = now;
  }

  stop(): void {
    this.#at = NEVER;
  }

  /**
   * Redis answered.
   *
   * @param asked - what it was asked for
   * @param unmet - what is wanted now
   */
  heard(asked: Wishes, unmet: Wishes, { askInMs }: Answer, now: number): void {
    this.#unmetInteractive = Math.min(asked.interactive, unmet.interactive);
    const isUnheard = askInMs === undefined || (unmet.interactive > 0 && asked.interactive === 0);
    // Others would wait for our turn in vain.
    const isTurnVain = askInMs !== undefined && unmet.total === 0 && asked.total > 0;
    const isDue = isTurnVain || (unmet.total > 0 && isUnheard);
    this.#at = isDue ? now : now + (askInMs ?? NEVER);
  }
}

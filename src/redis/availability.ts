import type { Logger } from '../logging.ts';

/** What a limiter does without Redis: go on with this process's share of the limit, or reject. */
export type UnavailablePolicy = 'local' | 'reject';

/** Redis is gone, or answers again. */
export interface FallbackInfo {
  /** Which of the two. */
  readonly state: 'unavailable' | 'recovered';
  /** What the limiter does meanwhile. */
  readonly policy: UnavailablePolicy;
  /** What went wrong; undefined once recovered. */
  readonly error: unknown;
}

/** Tells the logger and the hook once when Redis is gone, and once when it is back. */
export class Availability {
  readonly #policy: UnavailablePolicy;
  readonly #logger: Logger;
  readonly #hook: ((info: FallbackInfo) => void) | undefined;
  #isGone = false;

  constructor(options: {
    policy: UnavailablePolicy;
    logger: Logger;
    hook: ((info: FallbackInfo) => void) | undefined;
  }) {
    this.#policy = options.policy;
    this.#logger = options.logger;
    this.#hook = options.hook;
  }

  failed(error: unknown): void {
    if (this.#isGone) return;
    this.#isGone = true;
    const reason = error instanceof Error ? error.message : String(error);
    const what =
      this.#policy === 'local' ? 'this process keeps to its own share of the limit' : 'calls are rejected';
    this.#logger.warn(`The rate limiter lost Redis (${reason}); until it is back ${what}`);
    this.#call({ state: 'unavailable', policy: this.#policy, error });
  }

  succeeded(): void {
    if (!this.#isGone) return;
    this.#isGone = false;
    this.#logger.info('The rate limiter has Redis back');
    this.#call({ state: 'recovered', policy: this.#policy, error: undefined });
  }

  #call(info: FallbackInfo): void {
    const onFailure = () => this.#logger.warn('The hook `onFallback` failed; the limiter goes on');
    try {
      const returned: unknown = this.#hook?.(info);
      if (returned instanceof Promise) returned.catch(onFailure);
    } catch {
      onFailure();
    }
  }
}

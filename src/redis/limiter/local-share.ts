import type { Clock } from '../../common/timing.ts';
import type { BucketId, Ticket } from '../../limiter/limiter.ts';
import { TokenBucketLimiter } from '../../limiter/token-bucket.ts';
import { HORIZON_MS, PROBE_EVERY_MS, RETURN_MS } from './timing.ts';

/** What one process may do by itself during one outage of Redis. */
export class LocalShare {
  readonly #bucket: BucketId;
  readonly #limit: number;
  readonly #limiter: TokenBucketLimiter;
  readonly #end = new AbortController();
  readonly #freshMs: number;
  /** Until then tokens that Redis gave to any process may still count. */
  readonly opensAt: number;
  #isAsking = false;
  #failedAskAt: number;

  /**
   * @param options - `limit`: this process's share; `failedAskAt`: when the exchange began that failed first;
   *   `pausedUntil`: end of a pause that is known
   */
  constructor(options: {
    bucket: BucketId;
    limit: number;
    maxUplinkMs: number;
    timeoutMs: number;
    clock: Clock;
    failedAskAt: number;
    pausedUntil: number;
  }) {
    this.#bucket = options.bucket;
    this.#limit = options.limit;
    this.#limiter = new TokenBucketLimiter({ maxUplinkMs: options.maxUplinkMs, clock: options.clock });
    this.#freshMs = 2 * options.timeoutMs;
    this.#failedAskAt = options.failedAskAt;
    const lastTokenBackAt = options.failedAskAt + HORIZON_MS + options.maxUplinkMs + RETURN_MS;
    this.opensAt = Math.max(lastTokenBackAt, options.pausedUntil);
  }

  /** When Redis should be tried again. */
  get probeAt(): number {
    return this.#failedAskAt + PROBE_EVERY_MS;
  }

  failedAgain(askedAt: number): void {
    this.#failedAskAt = askedAt;
  }

  /**
   * Gives one ticket after another for as long as they are wanted.
   *
   * @param onTicket - returns false when nobody wants the ticket
   */
  pump(now: number, isWanted: () => boolean, onTicket: (ticket: Ticket) => boolean): void {
    // Who has not looked for long may find Redis back and the others at the full limit: look first.
    const isSurelyDown = now - this.#failedAskAt <= this.#freshMs;
    if (this.#isAsking || now < this.opensAt || !isSurelyDown || !isWanted()) return;
    this.#isAsking = true;
    const { signal } = this.#end;
    const asked = { bucket: this.#bucket, limit: this.#limit, priority: 'interactive', signal } as const;
    this.#limiter.acquire(asked).then(
      (ticket) => {
        this.#isAsking = false;
        if (signal.aborted || !onTicket(ticket)) ticket.cancel();
      },
      () => {
        this.#isAsking = false;
      },
    );
  }

  end(): void {
    this.#end.abort();
  }
}

import { isBelievable } from '../../limiter/announced-limit.ts';

/** Two ends of a pause that are no farther apart are one: every answer tells of it, and no two are equally long on their way. */
const SAME_PAUSE_MS = 20;

/** What this process knows of an endpoint whose allowance it shares, from Redis and from the answers of the service. */
export class EndpointView {
  readonly #configured: number;
  readonly #maxLimit: number;
  readonly #processes: number;
  #limit: number;
  #announced: number;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  /** @param options - the configured limit, the bound of announced ones, and how many processes share */
  constructor(options: { limit: number; maxLimit: number; processes: number }) {
    this.#configured = options.limit;
    this.#maxLimit = options.maxLimit;
    this.#processes = options.processes;
    this.#limit = Math.min(options.limit, options.maxLimit);
    this.#announced = options.limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** When the pause ends, on the clock; in the past when there is none. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** Tokens that start before it were given out by someone who did not know of the pause. */
  get usableFrom(): number {
    return this.#pausedUntil - SAME_PAUSE_MS;
  }

  /** What this process may use of the limit by itself. */
  get share(): number {
    return this.#shareOf(this.#limit);
  }

  /**
   * The limit that Redis told.
   *
   * @param announced - what the service announced last, to any process; undefined when it never did
   */
  hearLimit(limit: number, announced: number | undefined): void {
    this.#limit = limit;
    this.#announced = announced ?? this.#configured;
  }

  /** Whether the service announces a limit that Redis does not know. */
  isNewLimit(announced: number | undefined): boolean {
    return isBelievable(announced, this.#configured) && announced !== this.#announced;
  }

  /** This process's share of what the service announces; undefined when that is no limit. */
  announcedShare(announced: number | undefined): number | undefined {
    if (!isBelievable(announced, this.#configured)) return undefined;
    return this.#shareOf(Math.min(announced, this.#maxLimit));
  }

  /**
   * Someone knows of a pause; a shorter one changes nothing.
   *
   * @returns true when it ends later than was known
   */
  pauseUntil(until: number): boolean {
    const isLater = until > this.#pausedUntil + SAME_PAUSE_MS;
    if (isLater) this.#pausedUntil = until;
    return isLater;
  }

  #shareOf(limit: number): number {
    return Math.max(1, Math.floor(limit / this.#processes));
  }
}

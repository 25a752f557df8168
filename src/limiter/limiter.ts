import * as z from 'zod';
import { systemClock } from '../common/clock.ts';
import { countOption, type OptionShape } from '../common/option-schemas.ts';
import { ENDPOINT_NAMES, type EndpointName, endpoints } from '../endpoints.ts';
import { TrackingError } from '../errors.ts';

/** The priority of a waiting call: `interactive` goes before `background`. */
export type Priority = 'interactive' | 'background';

/** Identifies a bucket. All calls of one account to one endpoint of one service share a bucket. */
export interface BucketId {
  /** Origin and path of the service, without a trailing slash. */
  readonly baseUrl: string;
  /** Names the account, e.g. by a hash of its API key; never the key. */
  readonly account: string;
  /** Endpoint name, e.g. `trackers.results`; `request` for a call of `client.request` that is not in the endpoint table. */
  readonly endpoint: string;
}

export interface AcquireOptions {
  readonly bucket: BucketId;
  readonly priority: Priority;
  readonly signal?: AbortSignal | undefined;
  /** Longest pause that the call waits for, in milliseconds. Default: no bound. */
  readonly maxPauseMs?: number | undefined;
}

/** The rate limit that the headers of one response announce (docs/service.md 6.2). */
export interface RateLimitInfo {
  /** Requests allowed in a window of one second, if announced as a positive integer. */
  readonly limit: number | undefined;
  /** Requests left in the window. */
  readonly remaining: number | undefined;
  /** Time until the limit resets, in milliseconds. */
  readonly resetMs: number | undefined;
}

/** The parts of a response that the limiter reads. */
export interface ResponseFacts extends Partial<RateLimitInfo> {
  readonly status: number;
  /** How long a 429 asks to wait. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Permission for one request. Call `send` right before the request leaves, or `cancel` if it is not sent. Call `noteResponse` only when
 * a response has arrived: it lets the token come back earlier, but without a response the service may count the request later.
 */
export interface Permit {
  /** Tokens left in the bucket right after this one was granted. */
  readonly tokensLeft: number;
  send(): void;
  /** Call this when the headers have arrived. A 429 pauses the endpoint, at first for one window at most. */
  noteResponse(response: ResponseFacts): void;
  /**
   * Call this when an attempt has failed. After a reported 429, the endpoint is then paused for the time that the headers ask for,
   * unless the body says that a quota is used up.
   */
  settlePause(isQuotaUsedUp: boolean): void;
  /** Frees the token at once, because nothing was sent. Does nothing after `send`. */
  cancel(): void;
}

/** State of one bucket at one moment. */
export interface BucketSnapshot {
  /** Requests allowed in a window of one second. */
  readonly limit: number;
  /** Tokens that were granted and have not come back yet. */
  readonly inUse: number;
  /** Calls that wait for a token. */
  readonly queued: number;
  /** End of the pause that a 429 asked for, in milliseconds since the epoch; null if there is none. */
  readonly pausedUntil: number | null;
}

/** Grants permission to send, so that no window of the service contains more requests than the service allows. */
export interface Limiter {
  /** True if processes share the limits; the account then needs a name that is the same in all processes. */
  readonly spansProcesses: boolean;
  /** Maximum number of waiting calls of one endpoint; Infinity without a bound. */
  readonly maxQueue: number;
  /**
   * @throws QueueFullError if the queue is full; LongPauseError if a pause lasts longer than `maxPauseMs`; the signal's reason
   * @internal
   */
  acquire(options: AcquireOptions): Promise<Permit>;
  /** @internal */
  snapshot(bucket: BucketId): BucketSnapshot;
}

/** Options of every limiter. */
export interface LimiterOptions {
  /** Requests per second, e.g. `{ 'couriers.list': 5 }`. Set it if your account has other limits. Default: the endpoint table. */
  readonly limits?: Partial<Record<EndpointName, number | undefined>> | undefined;
  /** Maximum number of waiting calls of one endpoint. Further calls of this process reject with `QueueFullError`. Default: no bound. */
  readonly maxQueue?: number | undefined;
}

/** The options of every limiter, checked and filled in. */
type LimiterSettings = Pick<LimiterOptions, 'limits'> & { readonly maxQueue: number };

export const LIMITER_SHAPE = {
  limits: z
    .strictObject(Object.fromEntries(ENDPOINT_NAMES.map((name) => [name, countOption(1).optional()])))
    .optional(),
  maxQueue: countOption(0, true).default(Number.POSITIVE_INFINITY),
} satisfies OptionShape<LimiterOptions>;

/** Requests per second for paths outside the endpoint table; most endpoints of the table have this limit (docs/service.md 6.1). */
const OTHER_LIMIT_PER_SECOND = 10;

/** The limit of a bucket before the service announces one, and the maximum for announced limits. */
export interface ConfiguredLimit {
  readonly limit: number;
  readonly maxLimit: number;
}

/** A limit that the caller set is never raised. */
function findLimit(limits: LimiterOptions['limits'], { endpoint }: BucketId): ConfiguredLimit {
  const name = ENDPOINT_NAMES.find((known) => known === endpoint);
  const own = name && limits?.[name];
  if (own !== undefined) return { limit: own, maxLimit: own };
  const limit = name === undefined ? OTHER_LIMIT_PER_SECOND : endpoints[name].limitPerSecond;
  return { limit, maxLimit: limit * MAX_RAISE_FACTOR };
}

/**
 * The service asked for a longer pause than a call waits for. The client turns it into a `RateLimitError`, or into a `TimeoutError`
 * if only `totalTimeoutMs` is too short.
 */
export class LongPauseError extends TrackingError {
  static override readonly kind: string = 'LongPauseError';
  readonly pausedForMs: number;

  constructor(pausedForMs: number) {
    super(`The endpoint is paused for another ${Math.ceil(pausedForMs)} ms`);
    this.pausedForMs = pausedForMs;
  }
}

/** The window in which the service counts, in milliseconds (docs/service.md 6.1). */
export const WINDOW_MS = 1_000;

/** Time from a response to the return of its token: one window, and a margin because clocks differ in speed. */
export const RETURN_MS = WINDOW_MS + 10;

/** Longest time until the service counts a request that was sent, in milliseconds, with DNS, TCP and TLS. */
export const MAX_UPLINK_MS = 500;

/** Longest time from sending a request to the return of its token, however late the response comes. */
export const MAX_RETURN_MS = MAX_UPLINK_MS + RETURN_MS;

/** Longest pause after a 429, in milliseconds; a longer delay is more likely a mistake, such as a timestamp. */
const MAX_PAUSE_MS = 60 * 60 * 1_000;

/**
 * If the body of a 429 takes longer than this, the headers alone decide. It is shorter than a window, so that the pause is extended
 * before its first window ends.
 */
const MAX_BODY_DELAY_MS = WINDOW_MS / 2;

/** An announced limit raises the table's value at most by this factor, because a larger number may be an hourly quota. */
const MAX_RAISE_FACTOR = 5;

/** A token of a call. It is granted, and then sent or cancelled. */
export interface Token {
  /** See `Permit`. */
  readonly tokensLeft: number;
  state: 'granted' | 'sent' | 'cancelled';
  /** When the token comes back at the latest. */
  freeAt: number;
}

/** The bucket of a token. The permit calls these methods after the state of the token has changed. */
interface TokenOwner<BucketToken extends Token> {
  onSend(token: BucketToken, now: number): void;
  onPause(until: number, now: number): void;
  /** @param latestReturnAt - when the token would have come back without this response */
  onResponse(token: BucketToken, response: ResponseFacts, now: number, latestReturnAt: number): void;
  onCancel(token: BucketToken, now: number): void;
}

export function createPermit<BucketToken extends Token>(
  token: BucketToken,
  owner: TokenOwner<BucketToken>,
): Permit {
  let openPause: { readonly until: number; readonly timer: ReturnType<typeof setTimeout> } | undefined;

  function settlePause(isQuotaUsedUp: boolean): void {
    if (openPause === undefined) return;
    const { until, timer } = openPause;
    openPause = undefined;
    systemClock.clearTimeout(timer);
    if (!isQuotaUsedUp) owner.onPause(until, systemClock.now());
  }

  /**
   * Only the body shows whether the quota or the rate limit is exceeded. So this pauses for one window, and `settlePause` extends the
   * pause to the time that the headers ask for.
   */
  function pause(pauseMs: number, now: number): void {
    owner.onPause(now + Math.min(pauseMs, WINDOW_MS), now);
    if (pauseMs <= WINDOW_MS) return;
    const timer = systemClock.setTimeout(() => settlePause(false), MAX_BODY_DELAY_MS);
    openPause = { until: now + pauseMs, timer };
  }

  return {
    tokensLeft: token.tokensLeft,
    send() {
      const now = systemClock.now();
      token.state = 'sent';
      token.freeAt = now + MAX_RETURN_MS;
      owner.onSend(token, now);
    },
    noteResponse(response) {
      const now = systemClock.now();
      const latestReturnAt = token.freeAt;
      token.freeAt = Math.min(latestReturnAt, now + RETURN_MS);
      if (response.status === 429) pause(computePauseMs(response), now);
      owner.onResponse(token, response, now, latestReturnAt);
    },
    settlePause,
    cancel() {
      if (token.state !== 'granted') return;
      token.state = 'cancelled';
      owner.onCancel(token, systemClock.now());
    },
  };
}

const MIN_LIMIT_WITH_RESERVE = 10;

export function reservedTokens(limit: number): number {
  return limit >= MIN_LIMIT_WITH_RESERVE ? 1 : 0;
}

/** Computes the pause after a 429, in milliseconds: the requested delay, else one window (docs/service.md 6.3). */
function computePauseMs({ retryAfterMs = WINDOW_MS }: ResponseFacts): number {
  const isDelay = Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
  return isDelay ? Math.min(retryAfterMs, MAX_PAUSE_MS) : WINDOW_MS;
}

/** Computes the limit of a bucket after a response. */
export function computeLimit(
  { limit: announcedLimit, resetMs }: ResponseFacts,
  current: number,
  { limit: base, maxLimit }: ConfiguredLimit,
): number {
  // A reset later than one window belongs to an hourly or daily quota, which justifies no raise: undo an earlier raise.
  const isLongWindow = resetMs !== undefined && resetMs > WINDOW_MS;
  const unraised = isLongWindow ? Math.min(current, base) : current;
  if (announcedLimit === undefined || !Number.isSafeInteger(announcedLimit) || announcedLimit < 1)
    return unraised;
  if (announcedLimit <= base) return announcedLimit;
  if (resetMs === undefined || isLongWindow) return Math.max(unraised, base);
  return Math.min(announcedLimit, maxLimit);
}

/**
 * Idle buckets are deleted each time the number of buckets reaches a multiple of this. Otherwise an API key that changes daily
 * would leave unused buckets in memory each day.
 */
const CLEAN_EVERY_BUCKETS = 256;

/** A bucket keeps the announced limit and its data about other users for at least this long after its last call. */
const KEEP_IDLE_MS = 10_000;

interface Bucket {
  acquire(options: AcquireOptions): Promise<Permit>;
  snapshot(): BucketSnapshot;
}

/** Has one bucket for each endpoint and account; the first call of a bucket creates it. */
export abstract class BucketLimiter implements Limiter {
  abstract readonly spansProcesses: boolean;
  readonly maxQueue: number;
  readonly #limits: LimiterOptions['limits'];
  readonly #createBucket: (id: BucketId, configured: ConfiguredLimit) => Bucket;
  readonly #buckets = new Map<string, { readonly bucket: Bucket; usedAt: number }>();

  /** @internal */
  constructor(
    { limits, maxQueue }: LimiterSettings,
    createBucket: (id: BucketId, configured: ConfiguredLimit) => Bucket,
  ) {
    this.#limits = limits;
    this.maxQueue = maxQueue;
    this.#createBucket = createBucket;
  }

  /** @internal */
  acquire(options: AcquireOptions): Promise<Permit> {
    const { bucket: id, signal } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const key = formatBucketKey(id);
    const now = systemClock.now();
    let entry = this.#buckets.get(key);
    if (entry === undefined) {
      if (this.#buckets.size > 0 && this.#buckets.size % CLEAN_EVERY_BUCKETS === 0) this.#forgetIdle(now);
      entry = { bucket: this.#createBucket(id, findLimit(this.#limits, id)), usedAt: now };
      this.#buckets.set(key, entry);
    }
    entry.usedAt = now;
    return entry.bucket.acquire(options);
  }

  /** @internal */
  snapshot(id: BucketId): BucketSnapshot {
    const { limit } = findLimit(this.#limits, id);
    const idle = { limit, inUse: 0, queued: 0, pausedUntil: null };
    return this.#buckets.get(formatBucketKey(id))?.bucket.snapshot() ?? idle;
  }

  #forgetIdle(now: number): void {
    for (const [key, { bucket, usedAt }] of this.#buckets) {
      const { inUse, queued, pausedUntil } = bucket.snapshot();
      const isIdle = inUse === 0 && queued === 0 && pausedUntil === null;
      if (isIdle && now - usedAt >= KEEP_IDLE_MS) this.#buckets.delete(key);
    }
  }
}

/** Builds the key of a bucket. URLs and names of endpoints contain no line break, so different buckets have different keys. */
export function formatBucketKey({ baseUrl, account, endpoint }: BucketId): string {
  return `${endpoint}\n${baseUrl}\n${account}`;
}

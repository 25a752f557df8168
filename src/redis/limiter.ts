import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { countOption, type OptionShape, option, timeoutOption } from '../common/validation.ts';
import { ConnectionError } from '../errors.ts';
import {
  type AcquireOptions,
  AnnouncedLimit,
  type BucketId,
  type BucketSnapshot,
  Buckets,
  buildSnapshot,
  type ConfiguredLimit,
  computePauseMs,
  LIMITER_SHAPE,
  type Limiter,
  type LimiterOptions,
  MAX_RAISE_FACTOR,
  MAX_RETURN_MS,
  markCancelled,
  markReported,
  markSent,
  type Permit,
  type RateLimitFeedback,
  RETURN_MS,
  reservedTokens,
  type TokenState,
} from '../limiter/limiter.ts';
import { CallQueue } from '../limiter/queue.ts';
import {
  formatError,
  type Logger,
  limitLines,
  reportDriverErrors,
  resolveLogger,
} from '../observability/logger.ts';
import {
  formatKeys,
  HORIZON_MS,
  LIMITER_SCRIPT,
  PROBE,
  parseReply,
  RENEW_MS,
  SEND_WITHIN_MS,
} from './limiter-script.ts';
import { createScriptRunner, type RedisClient } from './redis-client.ts';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Tokens whose responses have arrived are collected for this long, and then reported to Redis together. This delays no request,
 * because a token comes back only a second after its response.
 */
const REPORT_WITHIN_MS = 300;
const RENEW_AHEAD_MS = 30;
const PROBE_EVERY_MS = 250;
/** After a blocked event loop, timers fire before the runtime reads waiting replies, so commands wait this much longer. */
const LAST_LOOK_MS = 20;

/** Options of {@link RedisLimiter}. */
export interface RedisLimiterOptions extends LimiterOptions {
  /** A connected client, pool, sentinel or cluster of `redis`, or a client or cluster of `ioredis`. You close it yourself. */
  readonly redis: RedisClient;
  /** Prefix of every key, without braces; the same in all sharing processes. Default: `tracking-client:limiter:`. */
  readonly keyPrefix?: string | undefined;
  /**
   * Number of processes that share the account. Without Redis each takes an equal part of the limit, at least 1 per second.
   * Default: 1, so without Redis several processes together exceed the limit.
   */
  readonly processes?: number | undefined;
  /** Time limit for a reply of Redis, in milliseconds; if it is exceeded, Redis counts as unavailable. Default: 500. */
  readonly commandTimeoutMs?: number | undefined;
  /** Without Redis, `local` keeps to the share of this process; `reject` rejects with `ConnectionError`. Default: `local`. */
  readonly onUnavailable?: 'local' | 'reject' | undefined;
  /** Logs when Redis becomes unavailable, and when it is back, each at most once a minute. Default: `console`. */
  readonly logger?: Logger | undefined;
}

const limiterOptions = z.strictObject({
  redis: z.custom<RedisClient>(),
  // In a cluster the first pair of braces decides the slot of a key, and that pair must be the one of `formatKeys`.
  keyPrefix: option<string>(
    'a non-empty string without braces',
    (value) => typeof value === 'string' && /^[^{}]+$/.test(value),
  ).default('tracking-client:limiter:'),
  processes: countOption(1).default(1),
  commandTimeoutMs: timeoutOption.default(500),
  onUnavailable: z.enum(['local', 'reject']).default('local'),
  ...LIMITER_SHAPE,
  logger: z.custom<Logger>().optional(),
} satisfies OptionShape<RedisLimiterOptions>);

/**
 * Shares the rate limits among all processes that use one Redis (5 or newer, or a compatible server), with the
 * guarantee of `TokenBucketLimiter`: at most `limit` requests fall into any window of one second.
 *
 * Processes that wait take turns. If one process gets a 429, all processes pause; if one process reads an announced limit, all
 * processes use this limit. If Redis fails, a process waits until every token that Redis granted is surely back, at most four
 * seconds, and then uses its own share of the limit. Configure Redis with `maxmemory-policy noeviction`: if Redis loses the keys,
 * the service may refuse requests for up to one second.
 *
 * @example
 * const redis = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
 * const client = new TrackingClient({ limiter: new RedisLimiter({ redis, processes: 4 }) });
 */
export class RedisLimiter implements Limiter {
  readonly spansProcesses = true;
  readonly maxQueue: number;
  readonly #buckets: Buckets<SharedBucket>;

  /**
   * @param options - see `RedisLimiterOptions`
   * @throws ConfigurationError if an option is invalid; nothing is sent yet
   */
  constructor(options: RedisLimiterOptions) {
    const shared = resolveSharedOptions(options);
    this.maxQueue = shared.maxQueue;
    this.#buckets = new Buckets(shared.limits, (id, configured) => new SharedBucket(id, configured, shared));
  }

  /** @internal */
  acquire(options: AcquireOptions): Promise<Permit> {
    return this.#buckets.get(options.bucket).acquire(options);
  }

  /** @internal */
  snapshot(bucket: BucketId): BucketSnapshot {
    return this.#buckets.snapshot(bucket);
  }
}

/** Logs each line at most once a minute, because each endpoint notices an outage, and each shard of a cluster fails alone. */
function watchRedis(isLocalAllowed: boolean, processes: number, logger: Logger | undefined) {
  const log = resolveLogger(logger, 'info');
  const effect = isLocalAllowed
    ? `this process uses 1/${processes} of the limit (\`processes\` must be the number of your processes)`
    : 'calls reject with ConnectionError (`onUnavailable`)';
  const [countLost, countBack] = [limitLines(), limitLines()];
  return {
    onFailure(error: unknown): void {
      if (countLost() === undefined) return;
      log.warn(`The rate limiter lost Redis (${formatError(error)}); until Redis is back, ${effect}`);
    },
    onRecovery(): void {
      if (countBack() === undefined) return;
      log.info('Redis is back; the rate limiter shares the whole limit again');
    },
  };
}

type SharedBucketOptions = ReturnType<typeof resolveSharedOptions>;

function resolveSharedOptions(options: RedisLimiterOptions) {
  const { redis, onUnavailable, logger, ...settings } = checkOptions(limiterOptions, options);
  const isLocalAllowed = onUnavailable === 'local';
  const runScript = createScriptRunner(redis);
  reportDriverErrors('Redis', redis, logger);
  return {
    ...settings,
    ...watchRedis(isLocalAllowed, settings.processes, logger),
    isLocalAllowed,
    runScript,
    processId: randomBytes(9).toString('base64url'),
  };
}

interface Token extends TokenState {
  readonly number: number;
  readonly startsAt: number;
  sendBy: number;
  readonly tokensLeft: number;
}

/**
 * Holds the tokens of this process. It sends one command at a time. A command reports the changed tokens, and requests a new token
 * for each waiting call.
 */
class SharedBucket {
  readonly #options: SharedBucketOptions;
  readonly #configured: ConfiguredLimit;
  readonly #keys: readonly string[];
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#update());
  readonly #tokensOut = new Set<Token>();
  #upcoming: Token[] = [];
  #nextNumber = 0;

  readonly #limit: AnnouncedLimit;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  #unreported = new Set<Token>();
  #isPauseUnreported = false;
  #isLimitUnreported = false;
  #reportBy = NEVER;
  #listedAs = { isWaiting: false, isInteractive: false };
  #askAt = NEVER;
  #isAsking = false;
  #isUpdateDue = false;

  /** Set while Redis is unavailable; at `opensAt` all tokens that Redis granted are surely back. */
  #outage: { readonly failedAt: number; readonly opensAt: number } | undefined;

  constructor(bucket: BucketId, configured: ConfiguredLimit, options: SharedBucketOptions) {
    this.#options = options;
    this.#configured = configured;
    this.#limit = new AnnouncedLimit(configured);
    this.#keys = formatKeys(options.keyPrefix, bucket);
    const { maxQueue } = options;
    this.#queue = new CallQueue({ endpoint: bucket.endpoint, maxQueue, onAbort: () => this.#updateSoon() });
  }

  acquire({ priority, signal, maxPauseMs }: AcquireOptions): Promise<Permit> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const pausedForMs = this.#pausedUntil - systemClock.now();
      this.#queue.append({ priority, signal, maxPauseMs, resolve, reject }, pausedForMs);
      this.#updateSoon();
    });
  }

  snapshot(): BucketSnapshot {
    const now = systemClock.now();
    this.#collect(now);
    return buildSnapshot(this.#limit.value, this.#tokensOut.size, this.#queue.size, this.#pausedUntil - now);
  }

  #createToken(fields: Pick<Token, 'number' | 'startsAt' | 'sendBy' | 'tokensLeft'>): Token {
    const token: Token = { ...fields, state: 'granted', sentAt: 0, freeAt: fields.sendBy + MAX_RETURN_MS };
    this.#tokensOut.add(token);
    return token;
  }

  #createPermit(token: Token): Permit {
    return {
      tokensLeft: token.tokensLeft,
      send: () => this.#send(token),
      report: (feedback) => this.#report(token, feedback),
      cancel: () => this.#cancel(token),
    };
  }

  #send(token: Token): void {
    const now = systemClock.now();
    if (!markSent(token, now)) return;
    // If the request was sent late, `#collect` may have removed the token. Add the token again, because the service counts the
    // request.
    this.#tokensOut.add(token);
    if (now > token.sendBy) this.#reportLater(token, now);
  }

  #report(token: Token, feedback: RateLimitFeedback): void {
    const now = systemClock.now();
    if (!markReported(token, now)) return;
    const limit = this.#limit.value;
    this.#limit.note(feedback, token);
    if (this.#limit.value !== limit) this.#isLimitUnreported = true;
    if (feedback.status === 429) {
      this.#isPauseUnreported = true;
      this.#pauseUntil(now + computePauseMs(feedback), now);
    }
    this.#reportLater(
      token,
      this.#isLimitUnreported || this.#isPauseUnreported ? now : now + REPORT_WITHIN_MS,
    );
  }

  #cancel(token: Token): void {
    if (!markCancelled(token)) return;
    token.freeAt = token.startsAt;
    this.#reportLater(token, systemClock.now());
  }

  #reportLater(token: Token, reportBy: number): void {
    this.#unreported.add(token);
    this.#reportBy = Math.min(this.#reportBy, reportBy);
    this.#updateSoon();
  }

  #pauseUntil(until: number, now: number): void {
    if (until <= this.#pausedUntil) return;
    this.#pausedUntil = until;
    this.#queue.rejectIfPauseExceeds(until - now);
  }

  get #share(): number {
    return Math.max(1, Math.floor(this.#limit.value / this.#options.processes));
  }

  get #wanted(): { readonly interactive: number; readonly total: number } {
    const { interactiveSize, size } = this.#queue;
    const held = this.#upcoming.length;
    return { interactive: Math.max(0, interactiveSize - held), total: Math.max(0, size - held) };
  }

  /** Waits for a microtask, so that all calls of one tick share a command. */
  #updateSoon(): void {
    if (this.#isUpdateDue) return;
    this.#isUpdateDue = true;
    queueMicrotask(() => {
      this.#isUpdateDue = false;
      this.#update();
    });
  }

  #update(): void {
    const now = systemClock.now();
    this.#collect(now);
    this.#grantStarted(now);
    this.#grantShare(now);
    this.#renewUnsent(now);
    if (!this.#isAsking && this.#nextAskAt(now) <= now) void this.#ask();
    // Reject calls beyond `maxQueue` only after Redis has replied or the share is used up: until then they may get tokens.
    if (!this.#isAsking || this.#nextShareAt(now) < NEVER) this.#queue.rejectExcess();
    this.#setTimer(now);
  }

  #collect(now: number): void {
    for (const token of this.#tokensOut) if (token.freeAt <= now) this.#tokensOut.delete(token);
  }

  #grantStarted(now: number): void {
    const upcoming = this.#upcoming;
    this.#upcoming = [];
    for (const token of upcoming) {
      // If this process was frozen, the token may be so old that Redis grants it to another process before our report arrives.
      // Do not use such a token.
      const isHeld = token.freeAt - RETURN_MS > now;
      const isNeeded = this.#queue.size > this.#upcoming.length && token.startsAt >= this.#pausedUntil;
      if (!isHeld || !isNeeded) this.#cancel(token);
      else if (token.startsAt > now) this.#upcoming.push(token);
      else this.#queue.take(1, 0)?.resolve(this.#createPermit(token));
    }
  }

  #grantShare(now: number): void {
    while (this.#nextShareAt(now) <= now) {
      const free = this.#share - this.#tokensOut.size;
      const call = this.#queue.take(free, reservedTokens(this.#share));
      const number = this.#nextNumber;
      this.#nextNumber += 1;
      const sendBy = now + SEND_WITHIN_MS;
      const token = this.#createToken({ number, startsAt: now, sendBy, tokensLeft: free - 1 });
      call?.resolve(this.#createPermit(token));
    }
  }

  #nextShareAt(now: number): number {
    const { isLocalAllowed, commandTimeoutMs } = this.#options;
    if (!this.#outage || !isLocalAllowed || this.#queue.size === 0) return NEVER;
    // If our next attempt to reach Redis is late, Redis may be back, and other processes may use the full limit. Then do not grant
    // our share.
    if (now - this.#outage.failedAt > PROBE_EVERY_MS + commandTimeoutMs + LAST_LOOK_MS) return NEVER;
    const next = this.#queue.next(this.#share - this.#tokensOut.size, reservedTokens(this.#share));
    const tokenAt = next ? now : Math.min(...Array.from(this.#tokensOut, ({ freeAt }) => freeAt));
    return Math.max(this.#outage.opensAt, this.#pausedUntil, tokenAt);
  }

  #renewUnsent(now: number): void {
    for (const token of this.#tokensOut) {
      if (this.#renewsAt(token) > now) continue;
      token.sendBy = now + RENEW_MS;
      token.freeAt = token.sendBy + MAX_RETURN_MS;
      this.#reportLater(token, now);
    }
  }

  #renewsAt({ state, sendBy }: Token): number {
    return state === 'granted' ? sendBy - RENEW_AHEAD_MS : NEVER;
  }

  #nextAskAt(now: number): number {
    if (this.#outage) {
      if (this.#queue.size === 0) return NEVER;
      return this.#options.isLocalAllowed ? this.#outage.failedAt + PROBE_EVERY_MS : now;
    }
    const { interactive, total } = this.#wanted;
    // Ask now if the list of waiting processes in Redis is wrong: if we wait and are not listed, if we are listed and no longer
    // wait, or if Redis does not know yet that an interactive call waits, which may use the reserved token.
    const { isWaiting, isInteractive } = this.#listedAs;
    const isListedWrongly = total > 0 !== isWaiting || (interactive > 0 && !isInteractive);
    return isListedWrongly ? now : Math.min(this.#askAt, this.#reportBy);
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const askedAt = systemClock.now();
    try {
      // The Redis client may queue a command until Redis is back. A report in this command would then be old. So send a command
      // without a report first.
      if (this.#outage) await this.#run(PROBE);
      await this.#exchange();
      if (this.#outage !== undefined) this.#options.onRecovery();
      this.#outage = undefined;
    } catch (error) {
      this.#noteOutage(error, askedAt);
    }
    this.#isAsking = false;
    this.#update();
  }

  /**
   * Reports changes and takes the tokens that Redis grants. After an outage it reports all tokens, the pause and the limit again,
   * because Redis may have lost them.
   */
  async #exchange(): Promise<void> {
    const { limit, maxLimit } = this.#configured;
    const isAfterOutage = this.#outage !== undefined;
    const askedAt = systemClock.now();
    const tokens = [...(isAfterOutage ? this.#tokensOut : this.#unreported)];
    const reportsLimit = isAfterOutage ? this.#limit.value !== limit : this.#isLimitUnreported;
    const reportsPause = isAfterOutage || this.#isPauseUnreported;
    const { interactive, total } = this.#wanted;
    const firstNumber = this.#nextNumber;
    // These numbers must not be used again, even if the reply gets lost.
    this.#nextNumber += total;
    this.#clearUnreported();
    const { free, pauseLeftMs, askInMs, starts, ...reply } = await this.#run([
      limit,
      Math.min(maxLimit, limit * MAX_RAISE_FACTOR),
      reportsLimit ? this.#limit.value : 0,
      reportsPause ? Math.max(0, Math.ceil(this.#pausedUntil - askedAt)) : 0,
      isAfterOutage ? 1 : 0,
      Math.max(0, this.#share - this.#tokensOut.size),
      reservedTokens(this.#limit.value),
      interactive,
      total,
      firstNumber,
      ...tokens.flatMap(({ number, freeAt }) => [number, Math.max(0, Math.ceil(freeAt - askedAt))]),
    ]);
    const now = systemClock.now();
    if (reply.limit !== this.#limit.value && !this.#isLimitUnreported) this.#limit.set(reply.limit, askedAt);
    // Count the pause from the time of the command, so that it ends here no later than in Redis.
    if (pauseLeftMs > 0) this.#pauseUntil(askedAt + pauseLeftMs, now);
    for (const [index, startInMs] of starts.entries()) {
      // Redis counted from some time between `askedAt` and `now`. To be safe, count the start from `now`, and `sendBy` from
      // `askedAt`.
      const [startsAt, sendBy] = [now + startInMs, askedAt + startInMs + SEND_WITHIN_MS];
      this.#upcoming.push(
        this.#createToken({ number: firstNumber + index, startsAt, sendBy, tokensLeft: free }),
      );
    }
    this.#upcoming.sort((a, b) => a.startsAt - b.startsAt);
    this.#listedAs = { isWaiting: total > starts.length, isInteractive: interactive > starts.length };
    this.#askAt = askInMs > 0 ? now + askInMs : NEVER;
  }

  #clearUnreported(): void {
    this.#unreported.clear();
    this.#isPauseUnreported = false;
    this.#isLimitUnreported = false;
    this.#reportBy = NEVER;
  }

  #noteOutage(error: unknown, askedAt: number): void {
    this.#options.onFailure(error);
    const opensAt = this.#outage?.opensAt ?? askedAt + HORIZON_MS + SEND_WITHIN_MS + MAX_RETURN_MS;
    this.#outage = { failedAt: systemClock.now(), opensAt };
    this.#clearUnreported();
    if (this.#options.isLocalAllowed) return;
    const message = 'The rate limiter lost Redis (`onUnavailable` is "reject"); this call was not sent';
    this.#queue.rejectAll(() => new ConnectionError(message, { cause: error, neverSent: true }));
  }

  #run(numbers: readonly number[]): Promise<ReturnType<typeof parseReply>> {
    const { runScript, processId, commandTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(new Error(`no reply within ${commandTimeoutMs} ms, the \`commandTimeoutMs\` of the limiter`));
      let timer = systemClock.setTimeout(() => {
        timer = systemClock.setTimeout(giveUp, LAST_LOOK_MS);
      }, commandTimeoutMs);
      runScript(LIMITER_SCRIPT, this.#keys, [processId, ...numbers.map(String)])
        .then(parseReply)
        .then(resolve, reject)
        .finally(() => systemClock.clearTimeout(timer));
    });
  }

  #setTimer(now: number): void {
    const wakeAt = Math.min(
      this.#upcoming[0]?.startsAt ?? NEVER,
      this.#isAsking ? NEVER : this.#nextAskAt(now),
      this.#nextShareAt(now),
      ...Array.from(this.#tokensOut, (token) => this.#renewsAt(token)),
    );
    // If no call waits, the program may exit before it reports its tokens: they only come back later.
    this.#timer.set(wakeAt, this.#queue.size > 0);
  }
}

import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { countOption, type OptionShape, option, timeoutOption } from '../common/option-schemas.ts';
import { ConfigurationError, ConnectionError } from '../errors.ts';
import {
  type AcquireOptions,
  type BucketId,
  BucketLimiter,
  type BucketSnapshot,
  type ConfiguredLimit,
  computeLimit,
  createPermit,
  LIMITER_SHAPE,
  type LimiterOptions,
  type Permit,
  type ResponseFacts,
  reservedTokens,
  type Token,
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
  KEEP_TOKEN_MS,
  LIMITER_SCRIPT,
  PROBE,
  REPORT_WITHIN_MS,
  SEND_WITHIN_MS,
} from './limiter-script.ts';
import { createScriptRunner, type RedisClient, redisOption } from './redis-client.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** A process that still waits asks again after one to two times this at the earliest, so that others get their turn. */
const MIN_ASK_MS = 15;
const PROBE_EVERY_MS = 250;
/** After a blocked event loop, timers fire before the runtime reads waiting replies, so commands wait this much longer. */
const LAST_LOOK_MS = 20;

/** Options of {@link RedisLimiter}. */
export interface RedisLimiterOptions extends LimiterOptions {
  /** A connected client of `redis` or `ioredis`. A pool, sentinel or cluster works, too. You close it yourself. */
  readonly redis: RedisClient;
  /** Prefix of every key, the same in all processes. It has no braces. Default: `tracking-client:limiter:`. */
  readonly keyPrefix?: string | undefined;
  /**
   * Number of processes that share the account. While Redis is unavailable, each takes an equal part of the limit, at least 1 per
   * second. Default: 1, so several processes together then exceed the limit.
   */
  readonly processes?: number | undefined;
  /** Time limit of one call, in milliseconds. After it, Redis counts as unavailable. Default: 500. */
  readonly commandTimeoutMs?: number | undefined;
  /**
   * Without Redis, `local` uses the share of this process, and `reject` rejects calls with a `ConnectionError`. Default: `local`.
   */
  readonly onUnavailable?: 'local' | 'reject' | undefined;
  /**
   * A logger, for example of pino, winston, bunyan or NestJS. It gets a line when Redis is down while calls wait, and when it is
   * back, each at most once a minute. Default: the console.
   */
  readonly logger?: Logger | undefined;
}

const limiterOptions = z.strictObject({
  redis: redisOption,
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
 * A process takes at most half of the free tokens at once, so that no process gets all of them. If one process gets a 429, all
 * processes pause; if one process reads an announced limit, all processes use this limit. If Redis fails, a process grants nothing
 * until 2.5 seconds after it sent the first command that failed: until then, the service may count requests that Redis allowed. Then
 * it uses its own share of the limit. Configure Redis with `maxmemory-policy noeviction`: if Redis loses the keys, the service may
 * refuse requests for up to one second.
 *
 * @example
 * const redis = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect();
 * const client = new TrackingClient({ limiter: new RedisLimiter({ redis, processes: 4 }) });
 */
export class RedisLimiter extends BucketLimiter {
  /** True, because all processes of the account share the limits. */
  readonly spansProcesses = true;

  /**
   * @param options - see `RedisLimiterOptions`
   * @throws ConfigurationError if an option is invalid; nothing is sent yet
   */
  constructor(options: RedisLimiterOptions) {
    const settings = resolveOptions(options);
    super(settings, (id, configured) => new SharedBucket(id, configured, settings));
  }
}

function resolveOptions(options: RedisLimiterOptions) {
  const { redis, onUnavailable, logger, ...settings } = checkOptions(limiterOptions, options);
  const runScript = createScriptRunner(redis);
  reportDriverErrors('Redis', redis, logger);
  const log = resolveLogger(logger, 'info');
  const isLocalAllowed = onUnavailable === 'local';
  const effect = isLocalAllowed
    ? `this process uses 1/${settings.processes} of the limit (\`processes\` is ${settings.processes}; set it to the number of your processes)`
    : 'calls reject with ConnectionError (`onUnavailable` is "reject")';
  // Log each line at most once a minute, because each endpoint notices an outage, and each shard of a cluster fails alone.
  const [countLost, countBack] = [limitLines(), limitLines()];
  return {
    ...settings,
    isLocalAllowed,
    runScript,
    processId: randomBytes(9).toString('base64url'),
    onFailure(error: unknown): void {
      if (countLost() === undefined) return;
      log.warn(`The rate limiter cannot use Redis (${formatError(error)}); until Redis is back, ${effect}`);
    },
    onRecovery(): void {
      if (countBack() === undefined) return;
      log.info('Redis is back; the rate limiter shares the whole limit again');
    },
  };
}

interface SharedToken extends Token {
  readonly number: number;
  /** If its request leaves later than this, Redis must hear of it at once. */
  readonly sendBy: number;
}

interface Outage {
  /** When the last command failed. */
  readonly failedAt: number;
  /** When all tokens that Redis granted are surely back. */
  readonly opensAt: number;
  /** True if Redis has replied to a probe. */
  readonly isOver: boolean;
  /** True if a failed command was sent for a call, and so was logged. */
  readonly concernsCalls: boolean;
}

function createReport() {
  return { tokens: new Set<SharedToken>(), hasPause: false, hasLimit: false, dueAt: NEVER };
}

/**
 * Keeps the tokens of this process. It sends one command at a time. A command reports the changed tokens, and requests a new token
 * for each waiting call.
 */
class SharedBucket {
  readonly #settings: ReturnType<typeof resolveOptions>;
  readonly #configured: ConfiguredLimit;
  readonly #keys: readonly string[];
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#update());
  #limit: number;
  readonly #tokensOut = new Set<SharedToken>();
  #nextNumber = 0;

  /** The next command reports these changes. It is sent at `dueAt` at the latest. */
  #report = createReport();
  /** When the next command asks for tokens, if calls wait. */
  #askAt = 0;
  /** True if the last command has left an interactive call without a token. */
  #isInteractiveWaiting = false;
  /** True if Redis has free tokens that the last command did not get. */
  #isMoreFree = false;
  #isAsking = false;
  #isUpdateDue = false;

  /** Set while Redis is unavailable. */
  #outage: Outage | undefined;

  constructor(bucket: BucketId, configured: ConfiguredLimit, settings: ReturnType<typeof resolveOptions>) {
    this.#settings = settings;
    this.#configured = configured;
    this.#limit = configured.limit;
    this.#keys = formatKeys(settings.keyPrefix, bucket);
    this.#queue = new CallQueue(bucket.endpoint, settings.maxQueue, () => this.#updateSoon());
  }

  acquire(options: AcquireOptions): Promise<Permit> {
    this.#updateSoon();
    return this.#queue.wait(options, systemClock.now());
  }

  snapshot(): BucketSnapshot {
    const now = systemClock.now();
    this.#collect(now);
    return this.#queue.snapshot(this.#limit, this.#tokensOut.size, now);
  }

  onSend(token: SharedToken, now: number): void {
    // If the request was sent late, `#collect` may have removed the token. Add the token again, because the service counts the
    // request.
    this.#tokensOut.add(token);
    this.#reportLater(token, now > token.sendBy ? now : now + REPORT_WITHIN_MS);
  }

  onPause(until: number, now: number): void {
    this.#queue.pauseUntil(until, now);
    this.#report.hasPause = true;
    this.#report.dueAt = now;
    this.#updateSoon();
  }

  onResponse(token: SharedToken, response: ResponseFacts, now: number): void {
    const limit = computeLimit(response, this.#limit, this.#configured);
    if (limit !== this.#limit) this.#report.hasLimit = true;
    this.#limit = limit;
    this.#reportLater(token, this.#report.hasLimit ? now : now + REPORT_WITHIN_MS);
  }

  onCancel(token: SharedToken, now: number): void {
    token.freeAt = now;
    this.#reportLater(token, now);
  }

  #createToken(number: number, grantedAt: number, tokensLeft: number): SharedToken {
    const [sendBy, freeAt] = [grantedAt + SEND_WITHIN_MS, grantedAt + KEEP_TOKEN_MS];
    const token: SharedToken = { number, state: 'granted', tokensLeft, sendBy, freeAt };
    this.#tokensOut.add(token);
    return token;
  }

  #reportLater(token: SharedToken, dueAt: number): void {
    this.#report.tokens.add(token);
    this.#report.dueAt = Math.min(this.#report.dueAt, dueAt);
    this.#updateSoon();
  }

  get #share(): number {
    return Math.max(1, Math.floor(this.#limit / this.#settings.processes));
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
    this.#grantShare(now);
    if (!this.#isAsking && this.#nextCommandAt(now) <= now) void this.#ask();
    // Reject calls beyond `maxQueue` only after Redis has no more tokens for them. In an outage, `#grantShare` has already granted
    // what it can.
    const mayGetTokens = this.#isAsking || this.#isMoreFree;
    if (!mayGetTokens || this.#nextShareAt(now) < NEVER) this.#queue.rejectExcess();
    this.#setTimer(now);
  }

  #collect(now: number): void {
    for (const token of this.#tokensOut) if (token.freeAt <= now) this.#tokensOut.delete(token);
  }

  #grantShare(now: number): void {
    while (this.#nextShareAt(now) <= now) {
      const free = this.#share - this.#tokensOut.size;
      const call = this.#queue.take(free, reservedTokens(this.#share));
      const token = this.#createToken(this.#nextNumber, now, free - 1);
      this.#nextNumber += 1;
      call?.resolve(createPermit(token, this));
    }
  }

  #nextShareAt(now: number): number {
    const { isLocalAllowed, commandTimeoutMs } = this.#settings;
    if (!this.#outage || this.#outage.isOver || !isLocalAllowed || this.#queue.size === 0) return NEVER;
    // If our next attempt to reach Redis is late, Redis may be back, and other processes may use the full limit. Then do not grant
    // our share.
    if (now - this.#outage.failedAt > PROBE_EVERY_MS + commandTimeoutMs + LAST_LOOK_MS) return NEVER;
    const next = this.#queue.next(this.#share - this.#tokensOut.size, reservedTokens(this.#share));
    const tokenAt = next ? now : Math.min(...Array.from(this.#tokensOut, ({ freeAt }) => freeAt));
    return Math.max(this.#outage.opensAt, this.#queue.pausedUntil, tokenAt);
  }

  #nextCommandAt(now: number): number {
    const callsWait = this.#queue.size > 0;
    if (this.#outage) {
      if (!callsWait) return NEVER;
      return this.#settings.isLocalAllowed ? this.#outage.failedAt + PROBE_EVERY_MS : now;
    }
    // Redis does not know yet that an interactive call waits, which may use the reserved token.
    const isInteractiveNew = this.#queue.interactiveSize > 0 && !this.#isInteractiveWaiting;
    const askAt = isInteractiveNew ? now : this.#askAt;
    return Math.min(callsWait ? askAt : NEVER, this.#report.dueAt);
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const askedAt = systemClock.now();
    const isForCall = this.#queue.size > 0;
    try {
      // The Redis client may queue a command until Redis is back. A report in this command would then be old. So send a command
      // without a report first.
      if (this.#outage) {
        await this.#run(PROBE);
        // From the next command on, Redis grants the rest of the share, so this process must not grant tokens of the share itself.
        this.#outage = { ...this.#outage, isOver: true };
      }
      await this.#exchange();
      if (this.#outage?.concernsCalls) this.#settings.onRecovery();
      this.#outage = undefined;
    } catch (error) {
      // A client that cannot run our script is a mistake of the program, and no outage that ends.
      if (error instanceof ConfigurationError) this.#queue.rejectAll(() => error);
      else this.#noteOutage(error, askedAt, isForCall);
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
    const report = isAfterOutage
      ? { tokens: this.#tokensOut, hasPause: true, hasLimit: this.#limit !== limit }
      : this.#report;
    this.#report = createReport();
    const { size: wanted, interactiveSize: interactive } = this.#queue;
    const firstNumber = this.#nextNumber;
    // These numbers must not be used again, even if the reply gets lost.
    this.#nextNumber += wanted;
    const [redisLimit = limit, free = 0, pauseLeftMs = 0, granted = 0, askInMs = 0] = await this.#run([
      limit,
      maxLimit,
      report.hasLimit ? this.#limit : 0,
      report.hasPause ? Math.max(0, Math.ceil(this.#queue.pausedUntil - askedAt)) : 0,
      isAfterOutage ? 1 : 0,
      Math.max(0, this.#share - this.#tokensOut.size),
      reservedTokens(this.#limit),
      interactive,
      wanted,
      firstNumber,
      ...[...report.tokens].flatMap(({ number, freeAt }) => [
        number,
        Math.max(0, Math.ceil(freeAt - askedAt)),
      ]),
    ]);
    const now = systemClock.now();
    if (!this.#report.hasLimit) this.#limit = redisLimit;
    // Count the pause from the time of the command, so that it ends here no later than in Redis.
    if (pauseLeftMs > 0) this.#queue.pauseUntil(askedAt + pauseLeftMs, now);
    for (let number = firstNumber; number < firstNumber + granted; number += 1) {
      // Redis counted from some time after `askedAt`. To be safe, count from `askedAt`.
      const token = this.#createToken(number, askedAt, free);
      // If this process was frozen, Redis may grant the token to another process before our report arrives, so do not use it.
      const isUsable = now <= token.sendBy && now >= this.#queue.pausedUntil;
      const call = isUsable ? this.#queue.take(1, 0) : undefined;
      const permit = createPermit(token, this);
      if (call === undefined) permit.cancel();
      else call.resolve(permit);
    }
    this.#isInteractiveWaiting = interactive > granted;
    this.#isMoreFree = askInMs === 0 && granted < wanted;
    // The random part keeps processes that wait for the same token from asking in step.
    const soonestInMs = MIN_ASK_MS * (1 + Math.random());
    this.#askAt = granted < wanted ? now + Math.max(askInMs, soonestInMs) : now;
  }

  #noteOutage(error: unknown, askedAt: number, isForCall: boolean): void {
    // A command without a call only reports tokens. If it fails, most likely the program has closed its connection and ends.
    const concernsCalls = isForCall || this.#outage?.concernsCalls === true;
    if (concernsCalls) this.#settings.onFailure(error);
    const opensAt = this.#outage?.opensAt ?? askedAt + KEEP_TOKEN_MS;
    this.#outage = { failedAt: systemClock.now(), opensAt, isOver: false, concernsCalls };
    this.#report = createReport();
    this.#isMoreFree = false;
    if (this.#settings.isLocalAllowed) return;
    const message = `The rate limiter cannot use Redis (${formatError(error)}), and \`onUnavailable\` is "reject", so this call was not sent`;
    this.#queue.rejectAll(() => new ConnectionError(message, { cause: error, neverSent: true }));
  }

  #run(numbers: readonly number[]): Promise<readonly number[]> {
    const { runScript, processId, commandTimeoutMs } = this.#settings;
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(new Error(`no reply within the \`commandTimeoutMs\` of ${commandTimeoutMs} ms`));
      let timer = systemClock.setTimeout(() => {
        timer = systemClock.setTimeout(giveUp, LAST_LOOK_MS);
      }, commandTimeoutMs);
      runScript(LIMITER_SCRIPT, this.#keys, [processId, ...numbers.map(String)])
        .then(resolve, reject)
        .finally(() => systemClock.clearTimeout(timer));
    });
  }

  #setTimer(now: number): void {
    const commandAt = this.#isAsking ? NEVER : this.#nextCommandAt(now);
    // If no call waits, the timer does not keep the program alive. If the program then exits before it reports its tokens, these
    // tokens come back a little later.
    this.#timer.set(Math.min(commandAt, this.#nextShareAt(now)), this.#queue.size > 0);
  }
}

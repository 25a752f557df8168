import { createHash } from 'node:crypto';
import { ReschedulableTimer, systemClock } from '../common/clock.ts';
import { ConnectionError } from '../errors.ts';
import {
  type AcquireOptions,
  type BucketId,
  type BucketSnapshot,
  computeLimit,
  computePauseMs,
  MAX_RAISE_FACTOR,
  MAX_RETURN_MS,
  type Permit,
  type RateLimitFeedback,
  RETURN_MS,
  reservedTokens,
  UNSENT_LEASE_MS,
} from '../limiter/limiter.ts';
import { CallQueue, formatBucketKey } from '../limiter/queue.ts';
import { HORIZON_MS, LIMITER_SCRIPT, RENEW_MS, SEND_WITHIN_MS } from './limiter-script.ts';
import type { ScriptRunner } from './redis-client.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** How long a response waits for others before Redis hears of it; its token is out for a second anyway. */
const NEWS_WITHIN_MS = 300;

/** How long before the end of its time a token that is still not sent is renewed. */
const RENEW_AHEAD_MS = 30;

/** From a failed try of Redis to the next one, if calls wait. */
const PROBE_EVERY_MS = 250;

/** Arguments of the script, after the process, with which it tells no news and asks for no token; both limits are 1. */
const PROBE = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/** A busy program fires the timer of a command before it reads a reply that is there, so it looks once more after this. */
const LAST_LOOK_MS = 20;

/** The settings and the connection that all buckets of one `RedisLimiter` share. */
export interface SharedBucketOptions {
  readonly scripts: ScriptRunner;
  readonly keyPrefix: string;
  /** Names this process among all. */
  readonly processId: string;
  readonly processes: number;
  readonly commandTimeoutMs: number;
  readonly maxQueue: number;
  /** True if this process goes on with its share of the limit without Redis; else its calls reject. */
  readonly isLocalAllowed: boolean;
  readonly onFailure: (bucket: SharedBucket, error: unknown) => void;
  readonly onSuccess: (bucket: SharedBucket) => void;
}

/** A token of this process. */
interface Token {
  readonly number: number;
  /** When its request may be sent, and until when Redis need not hear that it is sent. */
  readonly startsAt: number;
  sendBy: number;
  readonly tokensLeft: number;
  state: 'granted' | 'sent' | 'answered' | 'cancelled';
  sentAt: number;
  /** When it is back, as far as is known. */
  freeAt: number;
}

/**
 * One process's side of a bucket in Redis: which calls wait here, which tokens are ours, and when to talk to Redis.
 *
 * One command at a time tells Redis what became of our tokens and asks for as many as calls wait. Without Redis the
 * process counts its own tokens against its share of the limit.
 */
export class SharedBucket {
  readonly #options: SharedBucketOptions;
  readonly #configured: { readonly limit: number; readonly maxLimit: number };
  readonly #keys: readonly string[];
  readonly #queue: CallQueue;
  readonly #timer = new ReschedulableTimer(() => this.#update());
  /** Our tokens that are not back yet. */
  readonly #tokens = new Set<Token>();
  /** Those of them that Redis gave before they may be used, by their start. */
  #held: Token[] = [];
  #nextNumber = 0;

  #limit: number;
  #limitKnownSince = Number.NEGATIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;

  /** The news that Redis has not been told yet, and when it has to be told at the latest. */
  #news = new Set<Token>();
  #isPauseNews = false;
  #isLimitNews = false;
  #tellBy = NEVER;
  /** Whether Redis lists this process as waiting, and for interactive calls; and when it told us to ask again. */
  #listed = { isWaiting: false, isInteractive: false };
  #askAt = NEVER;
  #isAsking = false;
  #isUpdateDue = false;

  /** While Redis is away: when the last try failed, and when every token that Redis gave out is back. */
  #outage: { readonly failedAt: number; readonly opensAt: number } | undefined;

  constructor(first: AcquireOptions, options: SharedBucketOptions) {
    const { bucket, limit, maxLimit = NEVER } = first;
    this.#options = options;
    this.#configured = { limit, maxLimit };
    this.#limit = Math.min(limit, maxLimit);
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
    const pauseLeftMs = this.#pausedUntil - now;
    return {
      limit: this.#limit,
      inUse: this.#tokens.size,
      queued: this.#queue.size,
      pausedUntil: pauseLeftMs > 0 ? Math.round(systemClock.wallNow() + pauseLeftMs) : null,
    };
  }

  /** True if this process forgets nothing that matters with the bucket. */
  isIdle(): boolean {
    const { inUse, queued, pausedUntil } = this.snapshot();
    return inUse === 0 && queued === 0 && pausedUntil === null && !this.#isAsking;
  }

  #createToken(fields: Pick<Token, 'number' | 'startsAt' | 'sendBy' | 'tokensLeft'>): Token {
    const token: Token = { ...fields, state: 'granted', sentAt: 0, freeAt: fields.sendBy + MAX_RETURN_MS };
    this.#tokens.add(token);
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
    if (token.state !== 'granted') return;
    const now = systemClock.now();
    token.state = 'sent';
    token.sentAt = now;
    token.freeAt = now + MAX_RETURN_MS;
    // Even if it was given up meanwhile: the service will count the request.
    this.#tokens.add(token);
    if (now > token.sendBy) this.#tell(token, now);
  }

  #report(token: Token, feedback: RateLimitFeedback): void {
    if (token.state !== 'sent') return;
    const now = systemClock.now();
    token.state = 'answered';
    token.freeAt = Math.min(token.freeAt, now + RETURN_MS);
    // Responses overtake each other, and that of an older request must not bring an older limit back.
    if (token.sentAt >= this.#limitKnownSince) {
      const limit = computeLimit(feedback, this.#limit, this.#configured);
      if (feedback.announcedLimit !== undefined) this.#limitKnownSince = token.sentAt;
      if (limit !== this.#limit) this.#isLimitNews = true;
      this.#limit = limit;
    }
    if (feedback.status === 429) {
      this.#isPauseNews = true;
      this.#pauseUntil(now + computePauseMs(feedback), now);
    }
    this.#tell(token, this.#isLimitNews || this.#isPauseNews ? now : now + NEWS_WITHIN_MS);
  }

  #cancel(token: Token): void {
    if (token.state !== 'granted') return;
    token.state = 'cancelled';
    token.freeAt = token.startsAt;
    this.#tell(token, systemClock.now());
  }

  #tell(token: Token, tellBy: number): void {
    this.#news.add(token);
    this.#tellBy = Math.min(this.#tellBy, tellBy);
    this.#updateSoon();
  }

  #pauseUntil(until: number, now: number): void {
    if (until <= this.#pausedUntil) return;
    this.#pausedUntil = until;
    this.#queue.rejectIfPauseExceeds(until - now);
  }

  /** The part of the limit that this process may use without Redis. */
  get #share(): number {
    return Math.max(1, Math.floor(this.#limit / this.#options.processes));
  }

  /** How many calls want a token beyond those that are held for them. */
  get #wanted(): { readonly interactive: number; readonly total: number } {
    const { interactiveSize, size } = this.#queue;
    const held = this.#held.length;
    return { interactive: Math.max(0, interactiveSize - held), total: Math.max(0, size - held) };
  }

  /** Calls of one tick share a command. */
  #updateSoon(): void {
    if (this.#isUpdateDue) return;
    this.#isUpdateDue = true;
    queueMicrotask(() => {
      this.#isUpdateDue = false;
      this.#update();
    });
  }

  /** Does everything whose time has come, and sets the timer for the next. */
  #update(): void {
    const now = systemClock.now();
    this.#collect(now);
    this.#grantHeld(now);
    this.#grantShare(now);
    this.#renewUnsent(now);
    if (!this.#isAsking && this.#nextAskAt(now) <= now) void this.#ask();
    // A call that Redis is just being asked for may get its token at once, unless this process uses its share.
    if (!this.#isAsking || this.#nextShareAt(now) < NEVER) this.#queue.rejectExcess();
    this.#setTimer(now);
  }

  #collect(now: number): void {
    for (const token of this.#tokens) if (token.freeAt <= now) this.#tokens.delete(token);
  }

  /** Gives held tokens to calls, and those back that nobody wants or that start within a pause. */
  #grantHeld(now: number): void {
    const held = this.#held;
    this.#held = [];
    for (const token of held) {
      const isUsable = this.#queue.size > this.#held.length && token.startsAt >= this.#pausedUntil;
      if (!isUsable) this.#cancel(token);
      else if (token.startsAt > now) this.#held.push(token);
      else this.#queue.take(1, 0)?.resolve(this.#createPermit(token));
    }
  }

  /** Without Redis, gives tokens of this process's share to calls. */
  #grantShare(now: number): void {
    while (this.#nextShareAt(now) <= now) {
      const free = this.#share - this.#tokens.size;
      const call = this.#queue.take(free, reservedTokens(this.#share));
      const number = this.#nextNumber;
      this.#nextNumber += 1;
      const sendBy = now + SEND_WITHIN_MS;
      const token = this.#createToken({ number, startsAt: now, sendBy, tokensLeft: free - 1 });
      call?.resolve(this.#createPermit(token));
    }
  }

  /** When this process may next grant a token of its share; `NEVER` while Redis may be there. */
  #nextShareAt(now: number): number {
    const { isLocalAllowed, commandTimeoutMs } = this.#options;
    if (!this.#outage || !isLocalAllowed || this.#queue.size === 0) return NEVER;
    // If the next try should have failed by now and has not, Redis may be back and the others use the full limit.
    if (now - this.#outage.failedAt > PROBE_EVERY_MS + commandTimeoutMs + LAST_LOOK_MS) return NEVER;
    const next = this.#queue.next(this.#share - this.#tokens.size, reservedTokens(this.#share));
    const tokenAt = next ? now : Math.min(...Array.from(this.#tokens, ({ freeAt }) => freeAt));
    return Math.max(this.#outage.opensAt, this.#pausedUntil, tokenAt);
  }

  /** Keeps tokens that are still not sent, for a minute at most. */
  #renewUnsent(now: number): void {
    for (const token of this.#tokens) {
      if (this.#renewsAt(token) > now) continue;
      token.sendBy = now + RENEW_MS;
      token.freeAt = token.sendBy + MAX_RETURN_MS;
      this.#tell(token, now);
    }
  }

  #renewsAt({ state, sendBy, startsAt }: Token): number {
    const isUnsent = state === 'granted' && sendBy < startsAt + UNSENT_LEASE_MS;
    return isUnsent ? sendBy - RENEW_AHEAD_MS : NEVER;
  }

  #nextAskAt(now: number): number {
    if (this.#outage) {
      if (this.#queue.size === 0) return NEVER;
      return this.#options.isLocalAllowed ? this.#outage.failedAt + PROBE_EVERY_MS : now;
    }
    const { interactive, total } = this.#wanted;
    // The first call needs a place, an interactive one may have the reserve, and nobody shall wait for us in vain.
    const { isWaiting, isInteractive } = this.#listed;
    const isNew = total > 0 !== isWaiting || (interactive > 0 && !isInteractive);
    return isNew ? now : Math.min(this.#askAt, this.#tellBy);
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    const askedAt = systemClock.now();
    try {
      // The client may queue a command until Redis is back, when its news is out of date; so first try one without any.
      if (this.#outage) await this.#run(PROBE);
      await this.#exchange();
      this.#outage = undefined;
      this.#options.onSuccess(this);
    } catch (error) {
      this.#noteOutage(error, askedAt);
    }
    this.#isAsking = false;
    this.#update();
  }

  /** Tells Redis the news, asks for tokens and takes what it gives. After an outage it tells everything, because Redis may have lost it. */
  async #exchange(): Promise<void> {
    const { limit, maxLimit } = this.#configured;
    const isAfterOutage = this.#outage !== undefined;
    const askedAt = systemClock.now();
    const tokens = [...(isAfterOutage ? this.#tokens : this.#news)];
    const tellsLimit = isAfterOutage ? this.#limit !== limit : this.#isLimitNews;
    const tellsPause = isAfterOutage || this.#isPauseNews;
    const { interactive, total } = this.#wanted;
    const firstNumber = this.#nextNumber;
    // If the reply gets lost, its numbers must not be used again.
    this.#nextNumber += total;
    this.#forgetNews();
    const { free, pauseLeftMs, askInMs, starts, ...reply } = await this.#run([
      limit,
      Math.min(maxLimit, limit * MAX_RAISE_FACTOR),
      tellsLimit ? this.#limit : 0,
      tellsPause ? Math.max(0, Math.ceil(this.#pausedUntil - askedAt)) : 0,
      isAfterOutage ? 1 : 0,
      Math.max(0, this.#share - this.#tokens.size),
      reservedTokens(this.#limit),
      interactive,
      total,
      firstNumber,
      ...tokens.flatMap(({ number, freeAt }) => [number, Math.max(0, Math.ceil(freeAt - askedAt))]),
    ]);
    const now = systemClock.now();
    if (reply.limit !== this.#limit && !this.#isLimitNews) {
      this.#limit = reply.limit;
      this.#limitKnownSince = askedAt;
    }
    // Counted from the question, so that the pause ends here no later than in Redis and never grows on the way.
    if (pauseLeftMs > 0) this.#pauseUntil(askedAt + pauseLeftMs, now);
    for (const [index, startInMs] of starts.entries()) {
      // The reply took time: counted from its arrival no request is early, counted from the question none is late.
      const [startsAt, sendBy] = [now + startInMs, askedAt + startInMs + SEND_WITHIN_MS];
      this.#held.push(this.#createToken({ number: firstNumber + index, startsAt, sendBy, tokensLeft: free }));
    }
    this.#held.sort((a, b) => a.startsAt - b.startsAt);
    this.#listed = { isWaiting: total > starts.length, isInteractive: interactive > starts.length };
    this.#askAt = askInMs > 0 ? now + askInMs : NEVER;
  }

  #forgetNews(): void {
    this.#news.clear();
    this.#isPauseNews = false;
    this.#isLimitNews = false;
    this.#tellBy = NEVER;
  }

  #noteOutage(error: unknown, askedAt: number): void {
    this.#options.onFailure(this, error);
    const opensAt = this.#outage?.opensAt ?? askedAt + HORIZON_MS + SEND_WITHIN_MS + MAX_RETURN_MS;
    this.#outage = { failedAt: systemClock.now(), opensAt };
    this.#forgetNews();
    if (this.#options.isLocalAllowed) return;
    const message = 'The rate limiter cannot reach Redis, so nothing was sent';
    this.#queue.rejectAll(() => new ConnectionError(message, { cause: error, neverSent: true }));
  }

  /** Runs the script for this process. Rejects with the client's error, or after `commandTimeoutMs`. */
  #run(input: readonly number[]): Promise<ReturnType<typeof parseReply>> {
    const { scripts, processId, commandTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(new Error(`no reply within ${commandTimeoutMs} ms`));
      let timer = systemClock.setTimeout(() => {
        timer = systemClock.setTimeout(giveUp, LAST_LOOK_MS);
      }, commandTimeoutMs);
      scripts
        .run(LIMITER_SCRIPT, { keys: this.#keys, arguments: [processId, ...input.map(String)] })
        .then(parseReply)
        .then(resolve, reject)
        .finally(() => systemClock.clearTimeout(timer));
    });
  }

  #setTimer(now: number): void {
    const wakeAt = Math.min(
      this.#held[0]?.startsAt ?? NEVER,
      this.#isAsking ? NEVER : this.#nextAskAt(now),
      this.#nextShareAt(now),
      ...Array.from(this.#tokens, (token) => this.#renewsAt(token)),
    );
    // News alone is no reason for a program to go on: without it a token only comes back later.
    this.#timer.set(wakeAt, this.#queue.size > 0);
  }
}

/** The keys of one bucket. A cluster places a key by what stands in braces, so they share a place. */
export function formatKeys(keyPrefix: string, bucket: BucketId): string[] {
  const hash = createHash('sha256').update(formatBucketKey(bucket)).digest('hex');
  const tag = `${bucket.endpoint.replace(/[{}]/g, '')}:${hash.slice(0, 32)}`;
  const names = ['tokens', 'waiters', 'deadlines', 'pause', 'limit', 'outage'];
  // Numbered, because earlier versions keep theirs in another form.
  return names.map((name) => `${keyPrefix}{${tag}}:3:${name}`);
}

/** The reply of the script, which `LIMITER_SCRIPT` describes. */
function parseReply(reply: unknown) {
  // A client may be set to return numbers as text or as buffers.
  const numbers = Array.isArray(reply) ? reply.map((value) => Number(String(value))) : [];
  const [limit = Number.NaN, free = 0, pauseLeftMs = 0, askInMs = 0, ...starts] = numbers;
  if (numbers.length < 4 || numbers.some(Number.isNaN)) {
    throw new TypeError('Expected the reply of Redis to be a list of numbers');
  }
  return { limit, free, pauseLeftMs, askInMs, starts };
}

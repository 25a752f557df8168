import { createHash } from 'node:crypto';
import type { Clock } from '../../common/timing.ts';
import { kindOf } from '../../common/validation.ts';
import { bucketKey } from '../../limiter/bucket-registry.ts';
import type { BucketId } from '../../limiter/limiter.ts';
import type { ScriptRunner } from '../redis-client.ts';
import type { Report } from './lease-book.ts';
import { EXCHANGE_SCRIPT } from './script.ts';
import type { Wishes } from './wishes.ts';

/** How much longer than its time an answer may take to be read. */
const LAST_LOOK_MS = 20;

/** What one exchange tells and asks. */
export interface Question {
  readonly wishes: Wishes;
  readonly nextNumber: number;
  /** Tokens this process may hold while an outage is not long over. */
  readonly share: number;
  readonly isBack: boolean;
  readonly report: Report;
}

/** A token that is this process's own. */
export interface Grant {
  readonly startsInMs: number;
  readonly lane: 'interactive' | 'background';
}

/** What Redis answered; delays are from the moment it did. */
export interface Answer {
  readonly limit: number;
  /** What the service announced last, to any process, before `maxLimit`; undefined when it never did. */
  readonly announced: number | undefined;
  readonly free: number;
  readonly pausedForMs: number;
  /** When to ask again; undefined when every wish is fulfilled. */
  readonly askInMs: number | undefined;
  readonly grants: readonly Grant[];
}

/** What all exchanges about one bucket have in common. */
export interface ExchangeOptions {
  readonly scripts: ScriptRunner;
  readonly keyPrefix: string;
  readonly bucket: BucketId;
  readonly processId: string;
  readonly limit: number;
  readonly maxLimit: number;
  readonly reserve: number | undefined;
  readonly maxUplinkMs: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Talks with Redis about one bucket. */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #keys: readonly string[];

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#keys = keysOf(options.keyPrefix, options.bucket);
  }

  /**
   * Runs the script once.
   *
   * @param onLate - told of an answer that came after the time was over: its grants must go back
   * @returns the answer; rejects with the client's error, or after `timeoutMs`
   */
  ask(question: Question, onLate: (answer: Answer) => void): Promise<Answer> {
    const { scripts, clock, timeoutMs } = this.#options;
    const call = { keys: this.#keys, arguments: this.#argumentsOf(question) };
    return new Promise((resolve, reject) => {
      let isOver = false;
      // A busy program's timers fire before it reads what has long arrived, so the last look comes a moment later.
      let timer = clock.setTimeout(() => {
        timer = clock.setTimeout(() => {
          isOver = true;
          reject(new Error(`no answer within ${timeoutMs} ms`));
        }, LAST_LOOK_MS);
      }, timeoutMs);
      scripts.run(EXCHANGE_SCRIPT, call).then(
        (reply) => {
          clock.clearTimeout(timer);
          try {
            const answer = toAnswer(reply);
            if (isOver) onLate(answer);
            else resolve(answer);
          } catch (error) {
            reject(error);
          }
        },
        (error: unknown) => {
          clock.clearTimeout(timer);
          reject(error);
        },
      );
    });
  }

  #argumentsOf(question: Question): string[] {
    const { processId, limit, maxLimit, reserve = -1, maxUplinkMs, clock } = this.#options;
    const { leases, endpoint } = question.report;
    const now = clock.now();
    const since = (then: number) => Math.max(0, Math.floor(now - then));
    const isRefused = endpoint.pausedUntil !== undefined;
    const values = [
      limit,
      Number.isFinite(maxLimit) ? maxLimit : 0,
      question.wishes.interactive,
      question.wishes.background,
      reserve,
      question.nextNumber,
      question.share,
      question.isBack ? 1 : 0,
      maxUplinkMs,
      isRefused ? Math.max(0, Math.ceil((endpoint.pausedUntil ?? now) - now)) : -1,
      isRefused ? since(endpoint.refusedSentAt) : 0,
      endpoint.announced ?? 0,
      endpoint.announced === undefined ? 0 : since(endpoint.announcedSentAt),
    ];
    const news = leases.flatMap(({ kind, number, backAt }) => [
      kind,
      String(number),
      String(Math.ceil(backAt - now)),
    ]);
    return [processId, ...values.map(String), ...news];
  }
}

/**
 * The keys of one bucket. What stands in braces is what a cluster looks at, so they share a slot; the account, which is a
 * hash already, is hashed once more with the rest.
 */
export function keysOf(keyPrefix: string, bucket: BucketId): string[] {
  const hash = createHash('sha256').update(bucketKey(bucket)).digest('hex');
  const tag = `${bucket.endpoint.replace(/[{}]/g, '')}:${hash.slice(0, 32)}`;
  return ['leases', 'waiting', 'state'].map((name) => `${keyPrefix}{${tag}}:${name}`);
}

function toAnswer(reply: unknown): Answer {
  const [limit, announced, free, pausedForMs, askInMs, grants] = Array.isArray(reply) ? reply : [];
  if (!Array.isArray(grants)) {
    throw new TypeError(`Expected the limiter script to answer with a list, got ${kindOf(reply)}`);
  }
  const numbers = grants.map(toNumber);
  return {
    limit: toNumber(limit),
    announced: toNumber(announced) || undefined,
    free: toNumber(free),
    pausedForMs: toNumber(pausedForMs),
    askInMs: toNumber(askInMs) < 0 ? undefined : toNumber(askInMs),
    grants: Array.from({ length: numbers.length / 2 }, (_, index) => ({
      startsInMs: numbers[2 * index] ?? 0,
      lane: numbers[2 * index + 1] === 1 ? 'interactive' : 'background',
    })),
  };
}

/** Numbers arrive as texts from a client that is set to give texts. */
function toNumber(value: unknown): number {
  return Number(String(value));
}

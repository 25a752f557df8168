import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { BucketId } from '../limiter/limiter.ts';
import { SYNC_SCRIPT } from './limiter-script.ts';
import { bucketKey, type Clock } from './old-allowance.ts';
import type { ScriptRunner } from './redis-client.ts';

/** How much longer than its time a reply may take to be read. */
const LAST_LOOK_MS = 20;

/** What one process says and wants; the script reads it as JSON. */
export interface SyncRequest {
  readonly process: string;
  readonly limit: number;
  /** Announced limits count up to this; undefined for no bound. */
  readonly maxLimit: number | undefined;
  readonly reserve: number | undefined;
  readonly maxUplinkMs: number;
  /** Tokens this process may hold while an outage is not long over. */
  readonly share: number;
  /** Interactive calls that want a token. */
  readonly interactive: number;
  readonly background: number;
  /** Of the first token that is granted; the others follow. */
  readonly firstNumber: number;
  /** Whether Redis was away for this process: then `leases` are all that it holds. */
  readonly recovers: boolean;
  /** Tokens whose return changed; `isExact` unless an answer may bring them back sooner. */
  readonly leases: readonly {
    readonly number: number;
    readonly backInMs: number;
    readonly isExact: boolean;
  }[];
  readonly refusal: { readonly pauseMs: number; readonly sentMsAgo: number } | undefined;
  readonly announcement: { readonly limit: number; readonly sentMsAgo: number } | undefined;
}

const syncResponse = z.object({
  limit: z.number(),
  /** What the service announced last, to any process, before `maxLimit`; undefined when it never did. */
  announced: z.number().optional(),
  free: z.number(),
  pausedForMs: z.number(),
  /** When to ask again, from the reply on; undefined when nothing more is wanted. */
  askInMs: z.number().optional(),
  /** When each granted token may be used, from the reply on. */
  starts: z.array(z.number()).default([]),
});

/** What Redis says. */
export type SyncResponse = z.output<typeof syncResponse>;

/** The way to one bucket in Redis. */
export class SyncChannel {
  readonly #scripts: ScriptRunner;
  readonly #keys: readonly string[];
  readonly #timeoutMs: number;
  readonly #clock: Clock;

  constructor(options: {
    scripts: ScriptRunner;
    keyPrefix: string;
    bucket: BucketId;
    timeoutMs: number;
    clock: Clock;
  }) {
    this.#scripts = options.scripts;
    this.#keys = keysOf(options.keyPrefix, options.bucket);
    this.#timeoutMs = options.timeoutMs;
    this.#clock = options.clock;
  }

  /** Rejects with the client's error, or after `timeoutMs`. */
  async sync(request: SyncRequest): Promise<SyncResponse> {
    return syncResponse.parse(JSON.parse(String(await this.#run([JSON.stringify(request)]))));
  }

  /** Whether Redis answers. It may lie in the client's own queue for long, so it says and wants nothing. */
  async probe(): Promise<void> {
    await this.#run([]);
  }

  #run(input: readonly string[]): Promise<unknown> {
    const clock = this.#clock;
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(new Error(`no answer within ${this.#timeoutMs} ms`));
      // A busy program's timers fire before it reads what has long arrived, so the last look comes a moment later.
      let timer = clock.setTimeout(() => {
        timer = clock.setTimeout(giveUp, LAST_LOOK_MS);
      }, this.#timeoutMs);
      this.#scripts
        .run(SYNC_SCRIPT, { keys: this.#keys, arguments: input })
        .then(resolve, reject)
        .finally(() => clock.clearTimeout(timer));
    });
  }
}

/**
 * The keys of one bucket. What stands in braces is what a cluster looks at, so they share a slot; the account, which is a
 * hash already, is hashed once more with the rest.
 */
export function keysOf(keyPrefix: string, bucket: BucketId): string[] {
  const hash = createHash('sha256').update(bucketKey(bucket)).digest('hex');
  const tag = `${bucket.endpoint.replace(/[{}]/g, '')}:${hash.slice(0, 32)}`;
  // Numbered: processes of version 0.1.0 keep theirs in another form.
  return ['leases', 'waiting', 'state'].map((name) => `${keyPrefix}{${tag}}:2:${name}`);
}

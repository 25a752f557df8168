/** `polling.ts` forks this program for each worker that polls as `docs/recipes/polling-worker.md` describes. */
import pg from 'pg';
import { createClient } from 'redis';
import { TrackingClient } from '../../src/index.ts';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { RedisLimiter } from '../../src/redis/index.ts';
import { type WebhookCallbacks, WebhookInbox } from '../../src/webhooks/index.ts';

/** Every worker gets its task as JSON in its first argument. */
export interface PollerTask {
  /** A file with the function `pollTrackers` of the recipe. */
  readonly recipe: string;
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly limit: number;
  readonly redisUrl: string;
  /** Prefix of the keys in Redis. */
  readonly keyPrefix: string;
  readonly postgresUrl: string;
  readonly processes: number;
}

/** `measure` forgets what was measured so far, and `stop` ends the polling. */
export type PollerCommand = 'measure' | 'stop';

export interface PollerOutcome {
  /** How many seconds each polled tracker was due before a worker leased it. */
  readonly lagSeconds: readonly number[];
  /** Number of polls that failed. */
  readonly failed: number;
}

/** This program uses only one function of the recipe. A test checks the types of the recipe. */
interface Recipe {
  pollTrackers(polling: {
    readonly pool: pg.Pool;
    readonly client: TrackingClient;
    readonly inbox: WebhookInbox;
    readonly callbacks: WebhookCallbacks;
    readonly signal: AbortSignal;
    onLag(seconds: number): void;
  }): Promise<void>;
}

// `polling.ts` passes the task as the first argument.
const task = JSON.parse(process.argv[2] ?? '') as PollerTask;
// The file contains the code of the recipe, which exports this function.
const { pollTrackers } = (await import(task.recipe)) as Recipe;
const pool = new pg.Pool({ connectionString: task.postgresUrl }).on('error', console.error);
const redis = await createClient({ url: task.redisUrl }).on('error', console.error).connect();
const shutdown = new AbortController();
let [lagSeconds, failed]: [number[], number] = [[], 0];
// The recipe reports failed polls with `console.error`.
console.error = (...words: unknown[]) => {
  failed += 1;
  if (failed === 1) console.log('The first failed poll of a worker:', ...words);
};

process.on('message', (command: PollerCommand) => {
  if (command === 'stop') shutdown.abort();
  else [lagSeconds, failed] = [[], 0];
});
// An interrupted run must leave no process behind.
process.once('disconnect', () => process.exit());
const { limit, keyPrefix, processes } = task;
const limits = { 'trackers.results': limit };
const polling = pollTrackers({
  pool,
  client: new TrackingClient({
    baseUrl: task.baseUrl,
    apiKey: task.apiKey,
    limiter: new RedisLimiter({ redis, keyPrefix, processes, limits }),
  }),
  inbox: new WebhookInbox({ store: new PostgresDedupeStore({ pool }) }),
  callbacks: { onEvent() {} },
  signal: shutdown.signal,
  onLag: (seconds) => lagSeconds.push(seconds),
});
process.send?.('ready');
await polling;
process.send?.({ lagSeconds, failed } satisfies PollerOutcome);

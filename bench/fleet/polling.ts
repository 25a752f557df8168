import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { bundled } from '../../scripts/support/bundled.ts';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { recipeFiles } from '../../test/readme/support/recipes.ts';
import { forkEnforcingServer, readLog } from '../limiter/enforcing-server.ts';
import { sum } from '../statistics.ts';
import type { PollerCommand, PollerOutcome, PollerTask } from './poller.ts';
import type { PollingRun } from './polling-figures.ts';
import { deleteKeys, LIMIT } from './run.ts';

const TRACKERS = 9_000;
const WORKERS = 3;
const INTERVAL_SECONDS = 15 * 60;
/** A request is counted up to this many milliseconds after it arrived. */
const JITTER_MS = 40;

/** Describes a run of the workers. */
interface PollingCase {
  readonly name: string;
  /** The limit is multiplied by this number, and the times of the recipe are divided by it. */
  readonly speed: number;
  /** The priority of the polls. Default: that of `pollOnce`, which is `background`. */
  readonly priority?: 'interactive';
  /** Seconds of polling before the program measures. */
  readonly warmUpSeconds: number;
  readonly measuredSeconds: number;
}

/** Cases of the same list run side by side. A quick run measures before the lag has settled. */
export function createPollingCases(isQuick: boolean): (readonly PollingCase[])[] {
  const fast = isQuick
    ? { warmUpSeconds: 10, measuredSeconds: 20 }
    : { warmUpSeconds: 60, measuredSeconds: 60 };
  const real = { speed: 1, warmUpSeconds: 5, measuredSeconds: isQuick ? 10 : 30 };
  return [
    [{ name: '15 times faster', speed: 15, ...fast }],
    [
      { name: 'real time', ...real },
      { name: 'real time, `interactive` polls', priority: 'interactive', ...real },
    ],
  ];
}

/** Polls 9,000 trackers, which need the whole limit, with three workers of `docs/recipes/polling-worker.md`. */
export async function runPollingCase(
  { name, speed, priority, warmUpSeconds, measuredSeconds }: PollingCase,
  { redisUrl, postgresUrl }: { readonly redisUrl: string; readonly postgresUrl: string },
): Promise<PollingRun> {
  const limit = LIMIT * speed;
  const intervalSeconds = INTERVAL_SECONDS / speed;
  const keyPrefix = `bench:${randomUUID()}:`;
  const apiKey = 'key-of-the-pollers';
  const recipe = await writeRecipe(speed, priority);
  const server = await forkEnforcingServer({ mode: 'sliding', limit, jitterMs: JITTER_MS });
  const tables = await openTables(postgresUrl, intervalSeconds);
  const workers: ChildProcess[] = [];
  try {
    const [baseUrl = ''] = server.baseUrls;
    const script = await bundled('bench/fleet/poller.ts');
    const task = { recipe: recipe.file, baseUrl, apiKey, limit, redisUrl, keyPrefix, processes: WORKERS };
    for (let index = 0; index < WORKERS; index += 1) {
      const argument: PollerTask = { ...task, postgresUrl: tables.url };
      // Without `execArgv`, each worker would load `tsx`, too.
      workers.push(fork(script, [JSON.stringify(argument)], { execArgv: [] }));
    }
    await Promise.all(workers.map(nextMessage));
    await tables.addTrackers();
    await sleep(1_000 * warmUpSeconds);
    const before = await readLog(baseUrl, apiKey);
    for (const worker of workers) worker.send('measure' satisfies PollerCommand);
    const startedAt = performance.now();
    await sleep(1_000 * measuredSeconds);
    const log = await readLog(baseUrl, apiKey);
    const seconds = (performance.now() - startedAt) / 1_000;
    const overdueSeconds = await tables.readLag();
    const outcomes = await Promise.all(workers.map(stopWorker));
    const lags = outcomes.flatMap(({ lagSeconds }) => lagSeconds).toSorted((a, b) => a - b);
    const polls = log.slice(before.length).filter(({ accepted }) => accepted).length;
    return {
      ...{ name, limit, polls, intervalSeconds },
      refused: log.filter(({ accepted }) => !accepted).length,
      failed: sum(outcomes.map(({ failed }) => failed)),
      sharePercent: (100 * polls) / (limit * seconds),
      p99LagSeconds: lags[Math.ceil(0.99 * lags.length) - 1] ?? Number.NaN,
      // The lag of a tracker is recorded when a worker leases it, so also look at the trackers that still wait.
      maxLagSeconds: Math.max(lags.at(-1) ?? Number.NaN, overdueSeconds),
      roundSeconds: (TRACKERS * seconds) / polls,
    };
  } finally {
    for (const worker of workers) worker.kill('SIGKILL');
    await server.close();
    await deleteKeys(redisUrl, keyPrefix);
    await tables.remove();
    await recipe.remove();
  }
}

/** Writes the polling function of the recipe to a file, with shorter times and perhaps with another priority. */
async function writeRecipe(speed: number, priority: PollingCase['priority']) {
  const recipe = recipeFiles('polling-worker').find(({ path }) => path === 'src/poll-trackers.ts');
  let code = recipe?.code ?? '';
  const replace = (part: RegExp, replacement: string) => {
    if (!part.test(code)) throw new Error(`Expected \`src/poll-trackers.ts\` of the recipe to match ${part}`);
    code = code.replace(part, replacement);
  };
  for (const name of ['INTERVAL_MS', 'RETRY_MS', 'IDLE_MS'])
    replace(new RegExp(`^const ${name} = ([\\d_* ]+);`, 'm'), `const ${name} = ($1) / ${speed};`);
  if (priority !== undefined) replace(/pollOnce\(id, \{/, `$& priority: '${priority}',`);
  const folder = await mkdtemp(join(tmpdir(), 'polling-'));
  const source = join(folder, 'poll-trackers.ts');
  await writeFile(source, code);
  return { file: await bundled(source), remove: () => rm(folder, { recursive: true }) };
}

/** Creates the tables of the workers in a schema of their own. */
async function openTables(postgresUrl: string, intervalSeconds: number) {
  const schema = `bench_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(postgresUrl);
  url.searchParams.set('options', `-c search_path=${schema}`);
  const pool = new pg.Pool({ connectionString: url.href, max: 1 }).on('error', console.error);
  await pool.query(`CREATE SCHEMA ${schema}`);
  const table = recipeFiles('polling-worker').find(({ path }) => path === 'schema.sql');
  await pool.query(table?.code ?? '');
  await new PostgresDedupeStore({ pool }).createTable();
  return {
    url: url.href,
    /** Adds trackers that become due one after the other during an interval. */
    addTrackers: async () => {
      await pool.query(
        `INSERT INTO polled_trackers (tracker_id, due_at)
SELECT gen_random_uuid(), now() + $2 * interval '1 second' * place / $1 FROM generate_series(1, $1::int) AS place`,
        [TRACKERS, intervalSeconds],
      );
    },
    /** Reads for how many seconds the longest waiting tracker has been due. */
    readLag: async (): Promise<number> => {
      const { rows } = await pool.query<{ lag: number }>(
        'SELECT extract(epoch FROM now() - min(due_at))::float8 AS lag FROM polled_trackers',
      );
      return rows[0]?.lag ?? Number.NaN;
    },
    remove: async () => {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
      await pool.end();
    },
  };
}

/** Lets a worker give back its leases, and returns what it measured. */
async function stopWorker(worker: ChildProcess): Promise<PollerOutcome> {
  worker.send('stop' satisfies PollerCommand);
  // After `ready`, a worker sends nothing but its outcome.
  return (await nextMessage(worker)) as PollerOutcome;
}

async function nextMessage(worker: ChildProcess): Promise<unknown> {
  const exited = once(worker, 'exit').then(([code, signal]) => {
    throw new Error(`A worker ended early with ${code ?? signal}`);
  });
  const [message] = await Promise.race([once(worker, 'message'), exited]);
  return message;
}

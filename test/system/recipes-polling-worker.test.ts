// docs/recipes/polling-worker.md with workers as processes of their own, on a fake service in another process.
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makePool, useSchema } from '../integration/postgres-schema.ts';
import { makeRecipeFolder } from '../integration/recipe-folder.ts';
import { describeWithPostgres, describeWithRedis } from '../integration/services.ts';
import { recipeFiles } from '../readme/support/recipes.ts';
import { expectRepeatsOfKillOnly, PollingProcesses } from './polling-processes.ts';

/** Several starts of programs can take long on a busy machine. */
const TIMEOUT_MS = 180_000;
const CONCURRENCY = 20;
const LEASE_MS = 12_000;

/** What differs in a worker with short leases and a raised limit, whose callback notes each call in a table. */
const SHORT_LEASES: readonly (readonly [code: string, replacement: string])[] = [
  [
    'const LEASE_MS = 120_000;',
    'const [name, limit, leaseMs, keyPrefix] = process.argv.slice(2);\nconst LEASE_MS = Number(leaseMs);',
  ],
  // Few connections, because other tests use the same server, which refuses the 98th.
  ['query_timeout: 4_000 }', 'max: 4 }'],
  // A busy machine must not look like a database that hangs.
  ['new PostgresDedupeStore({ pool })', 'new PostgresDedupeStore({ pool, commandTimeoutMs: 10_000 })'],
  ['new WebhookInbox({ store })', 'new WebhookInbox({ store, leaseMs: LEASE_MS })'],
  [
    'processes: 3 }',
    `processes: 3, keyPrefix, commandTimeoutMs: 10_000,
  limits: { 'trackers.results': Number(limit), 'trackers.get': Number(limit) } }`,
  ],
  ["console.log('new event', key);", "return pool.query('INSERT INTO calls VALUES ($1, $2)', [key, name]);"],
];

/** Returns the worker of the recipe with these replacements. */
function replaceInWorker(replacements: typeof SHORT_LEASES): string {
  const [worker] = recipeFiles('polling-worker').filter(({ path }) => path === 'src/worker.ts');
  return replacements.reduce((code, [from, to]) => {
    expect(code).toContain(from);
    return code.replace(from, () => to);
  }, worker?.code ?? '');
}

await describeWithRedis('polling-worker.md on a real Redis', async (redisUrl) => {
  await describeWithPostgres('and a real PostgreSQL', (postgresUrl) => {
    const { schema } = useSchema(postgresUrl);
    const schemaUrl = new URL(postgresUrl);
    schemaUrl.searchParams.set('options', `-c search_path=${schema}`);
    const tables = makePool({ connectionString: schemaUrl.href, max: 2 });
    const redis = new Redis(redisUrl).on('error', () => {});
    const keyPrefix = `test:polling-worker:${randomUUID()}:`;
    const processes = new PollingProcesses();
    const cleanUps: (() => Promise<unknown>)[] = [];
    let folder: string;

    beforeAll(async () => {
      const recipe = await makeRecipeFolder('polling-worker');
      cleanUps.push(recipe.remove);
      folder = recipe.folder;
      await writeFile(join(folder, 'short-leases.ts'), replaceInWorker(SHORT_LEASES));
      const [sql] = recipeFiles('polling-worker').filter(({ path }) => path === 'schema.sql');
      await tables.query(`${sql?.code}; CREATE TABLE calls (key text NOT NULL, worker text NOT NULL)`);
    });
    // Each service gives the same ids to its trackers and events, so the inbox must forget them.
    beforeEach(() => tables.query('TRUNCATE polled_trackers, calls; DROP TABLE IF EXISTS tracking_inbox'));
    afterEach(async () => {
      processes.killAll();
      const keys = await redis.keys(`*${keyPrefix}*`);
      if (keys.length > 0) await redis.del(keys);
    });
    afterAll(async () => {
      for (const cleanUp of cleanUps) await cleanUp();
      redis.disconnect();
      await tables.end();
    });

    /** Starts a service whose trackers are due now. */
    async function startService(trackers: number, limit: number, latencyMs?: number) {
      const { trackerIds, env, count } = await processes.startService(trackers, limit, latencyMs);
      await tables.query(
        'INSERT INTO polled_trackers (tracker_id, due_at) SELECT unnest($1::text[]), now()',
        [trackerIds],
      );
      const all = { ...env, DATABASE_URL: schemaUrl.href, REDIS_URL: redisUrl };
      const startWorker = (file: string, ...args: readonly string[]) =>
        processes.startWorker(folder, all, file, ...args);
      const startShort = (name: string, leaseMs = LEASE_MS) =>
        startWorker('short-leases.ts', name, `${limit}`, `${leaseMs}`, keyPrefix);
      return { startWorker, startShort, count, trackerIds };
    }

    async function query<Row>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
      const { rows } = await tables.query(sql, [...values]);
      return rows;
    }
    async function countRows(condition: string): Promise<number> {
      const [row] = await query<{ count: number }>(
        `SELECT count(*)::int AS count FROM polled_trackers WHERE ${condition}`,
      );
      return row?.count ?? Number.NaN;
    }
    const waitFor = (check: () => Promise<void>, timeout = 120_000) =>
      vi.waitFor(check, { timeout, interval: 50 });

    describe('2,000 due trackers, one worker is killed', () => {
      it.each([2, 3])(
        '%d workers → every event is handled, twice only where the kill forces it, no 429, and a lease later others take over',
        async (workers) => {
          const { startShort, count, trackerIds } = await startService(2_000, 400);
          const [killed, ...others] = await Promise.all(
            Array.from({ length: workers }, (_, index) => startShort(`worker-${index}`)),
          );
          await waitFor(async () =>
            expect(await countRows('due_at > now() AND lease IS NULL')).toBeGreaterThan(300),
          );
          await killed?.end('SIGKILL');
          const killedAt = performance.now();
          const leased = await query<{ lease: string }>(
            'SELECT lease FROM polled_trackers WHERE lease IS NOT NULL',
          );
          const leases = leased.map(({ lease }) => lease);
          expect(leases.length).toBeGreaterThan(0);
          await waitFor(async () => {
            const left = await query('SELECT FROM polled_trackers WHERE lease = ANY ($1)', [leases]);
            expect(left).toHaveLength(0);
          });
          const takenOverMs = performance.now() - killedAt;
          await waitFor(async () => expect(await countRows('due_at <= now() OR lease IS NOT NULL')).toBe(0));
          for (const { end, lines } of others)
            expect([await end('SIGTERM'), lines], lines.join('\n')).toEqual([0, []]);

          expect(await countRows('lease IS NOT NULL')).toBe(0);
          expect(await countRows('stopped')).toBe(trackerIds.length / 4);
          const calls = await query<{ key: string; workers: string[] }>(
            'SELECT key, array_agg(worker) AS workers FROM calls GROUP BY key',
          );
          expect(calls).toHaveLength(2 * trackerIds.length);
          expectRepeatsOfKillOnly(
            calls.map(({ workers }) => workers),
            'worker-0',
            CONCURRENCY,
          );
          const { refused, polls } = await count();
          expect(refused).toBe(0);
          expect(Object.keys(polls).toSorted()).toEqual(trackerIds.toSorted());
          const repeated = Object.values(polls).reduce((sum, times) => sum + times - 1, 0);
          expect(repeated).toBeLessThanOrEqual(CONCURRENCY);
          // An idle worker looks for due trackers every two seconds, and a busy machine is slow.
          expect(takenOverMs).toBeLessThan(3 * LEASE_MS);
        },
        TIMEOUT_MS,
      );
    });

    it(
      'SIGTERM while requests are under way → the leases are given back, and another worker polls the trackers at once',
      async () => {
        const { startShort, count } = await startService(10, 100, 2_000);
        const first = await startShort('first');
        await waitFor(async () => expect(await countRows('lease IS NOT NULL')).toBe(10));
        expect([await first.end('SIGTERM'), first.lines], first.lines.join('\n')).toEqual([0, []]);
        expect(await countRows('lease IS NULL AND due_at <= now()')).toBe(10);
        const second = await startShort('second');
        await waitFor(async () => expect(await countRows('due_at > now() AND lease IS NULL')).toBe(10));
        expect(await second.end('SIGTERM')).toBe(0);
        expect(await query('SELECT DISTINCT worker FROM calls')).toEqual([{ worker: 'second' }]);
        expect((await count()).refused).toBe(0);
      },
      TIMEOUT_MS,
    );

    it(
      'a worker that is frozen for longer than its leases → another worker takes over, and the first one changes nothing later',
      async () => {
        // The worker gives up a poll after a quarter of the lease, and a busy machine needs seconds for a poll.
        const leaseMs = 16_000;
        const { startShort, trackerIds } = await startService(10, 100, 1_000);
        const frozen = await startShort('frozen', leaseMs);
        await waitFor(async () => expect(await countRows('lease IS NOT NULL')).toBe(10));
        frozen.send('SIGSTOP');
        const other = await startShort('other', leaseMs);
        await waitFor(async () => expect(await countRows('due_at > now() AND lease IS NULL')).toBe(10));
        const polled = 'SELECT tracker_id, due_at, lease, stopped FROM polled_trackers ORDER BY tracker_id';
        const before = await query(polled);
        frozen.send('SIGCONT');
        expect(await frozen.end('SIGTERM')).toBe(0);
        expect(await query(polled)).toEqual(before);
        expect(await query('SELECT key FROM calls')).toHaveLength(2 * trackerIds.length);
        expect(await query('SELECT DISTINCT worker FROM calls')).toEqual([{ worker: 'other' }]);
        expect(await other.end('SIGTERM')).toBe(0);
      },
      TIMEOUT_MS,
    );

    it(
      'src/worker.ts as it stands, started twice → each event is reported once, a stopped tracker is polled no more; exit code 0',
      async () => {
        const { startWorker, count, trackerIds } = await startService(6, 10);
        for (const isSecondRun of [false, true]) {
          const { lines, end } = await startWorker('src/worker.ts');
          await waitFor(async () =>
            expect(await countRows('stopped OR due_at > now() AND lease IS NULL')).toBe(6),
          );
          expect(await end('SIGTERM')).toBe(0);
          expect(new Set(lines).size).toBe(lines.length);
          expect(lines.filter((line) => line.startsWith('new event '))).toHaveLength(
            isSecondRun ? 0 : 2 * trackerIds.length,
          );
          const { polls } = await count();
          expect(Object.values(polls).reduce((sum, times) => sum + times, 0)).toBe(isSecondRun ? 11 : 6);
          await tables.query('UPDATE polled_trackers SET due_at = now()');
        }
      },
      TIMEOUT_MS,
    );
  });
});

// docs/recipes/polling-worker.md as a process of its own, which is killed in the middle and started again.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { recipeFiles } from '../readme/support/recipes.ts';
import { makePool, useSchema } from './postgres-schema.ts';
import { makeRecipeFolder } from './recipe-folder.ts';
import { describeWithPostgres } from './services.ts';

/** Two starts of a program can take long on a busy machine. */
const TIMEOUT_MS = 120_000;
const NUMBERS = Array.from({ length: 6 }, (_, index) => `RR12345678${index}CN`);

await describeWithPostgres('polling-worker.md on a real PostgreSQL', (url) => {
  const { schema } = useSchema(url);
  const schemaUrl = new URL(url);
  schemaUrl.searchParams.set('options', `-c search_path=${schema}`);
  const tables = makePool({ connectionString: schemaUrl.href, max: 2 });
  const fake = createFakeTrackingService({ resultsDelayMs: 0 });
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  let ids: string[];
  const workers: ChildProcess[] = [];
  let env: NodeJS.ProcessEnv;
  let folder: string;
  const cleanUps: (() => Promise<unknown>)[] = [() => tables.end()];

  beforeAll(async () => {
    const server = await fake.listen();
    const recipe = await makeRecipeFolder('polling-worker');
    cleanUps.push(() => server.close(), recipe.remove);
    folder = recipe.folder;
    env = {
      ...process.env,
      DATABASE_URL: schemaUrl.href,
      TRACKING_BASE_URL: server.url,
      TRACKING_API_KEY: fake.apiKey,
    };
    await tables.query(recipeFiles('polling-worker').find(({ path }) => path === 'schema.sql')?.code ?? '');
  });
  beforeEach(async () => {
    fake.reset();
    await tables.query('TRUNCATE polled_trackers, polled_events');
    ids = [];
    for (const [index, trackingNumber] of NUMBERS.entries()) {
      const { trackerId } = await client.trackers.create({ trackingNumber });
      ids.push(trackerId);
      fake.shipment(trackingNumber).addEvent({ status: 'Accepted' }).addEvent({ status: 'Arrived' });
      // The first three are due now, the others half a second later.
      const delay = index < 3 ? '0 s' : '500 ms';
      await tables.query('INSERT INTO polled_trackers VALUES ($1, now() + $2::interval)', [trackerId, delay]);
    }
  });
  afterEach(() => {
    for (const worker of workers.splice(0)) worker.kill('SIGKILL');
  });
  afterAll(async () => {
    for (const cleanUp of cleanUps) await cleanUp();
  });

  function start() {
    const worker = spawn(process.execPath, ['--import', 'tsx', 'src/worker.ts'], { cwd: folder, env });
    workers.push(worker);
    const lines: string[] = [];
    for (const output of [worker.stdout, worker.stderr])
      output.on('data', (text) => lines.push(...`${text}`.split('\n').filter((line) => line !== '')));
    const end = async (signal: NodeJS.Signals) => {
      worker.kill(signal);
      const [code] = await once(worker, 'close');
      return code;
    };
    return { lines, end };
  }

  async function countEvents(): Promise<number> {
    const { rows } = await tables.query('SELECT count(*)::int AS events FROM polled_events');
    return rows[0].events;
  }

  const waitForEvents = (count: number) =>
    vi.waitFor(async () => expect(await countEvents()).toBe(count), { timeout: 60_000, interval: 50 });
  const countPolls = () =>
    ids.map((id) => fake.requests.filter(({ path }) => path.endsWith(`/${id}/results`)).length);

  it(
    'SIGKILL while an event is stored, and a second start → every event once, and nobody waits for an interval',
    async () => {
      const holder = await tables.connect();
      await holder.query('BEGIN');
      await holder.query('SELECT FROM polled_trackers WHERE tracker_id = ANY ($1) FOR UPDATE', [
        ids.slice(3),
      ]);
      const first = start();
      await waitForEvents(6);
      await vi.waitFor(async () => {
        const waiting = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE polled_trackers%'`;
        expect((await tables.query(waiting)).rows).toHaveLength(1);
      }, 10_000);
      expect(await first.end('SIGKILL')).toBeNull();
      await holder.query('ROLLBACK');
      holder.release();
      const second = start();
      await waitForEvents(12);
      expect(await second.end('SIGTERM')).toBe(0);
      // Those that were stored before the kill are due in 15 minutes, and were not polled again.
      expect(countPolls().slice(0, 3)).toEqual([1, 1, 1]);
      const reports = [...first.lines, ...second.lines];
      expect(reports.every((line) => line.startsWith('new event '))).toBe(true);
      expect(new Set(reports).size).toBe(reports.length);
    },
    TIMEOUT_MS,
  );

  it(
    'a new event of each tracker, and a start when all are due → only the new events are reported',
    async () => {
      const first = start();
      await waitForEvents(12);
      expect(await first.end('SIGTERM')).toBe(0);
      for (const number of NUMBERS) fake.shipment(number).addEvent({ status: 'Out for delivery' });
      await tables.query('UPDATE polled_trackers SET next_poll_at = now()');
      const { lines, end } = start();
      await waitForEvents(18);
      expect(await end('SIGTERM')).toBe(0);
      const { rows } = await tables.query(
        `SELECT 'new event ' || key AS line FROM polled_events WHERE event->>'status' = 'Out for delivery'`,
      );
      expect(lines.toSorted()).toEqual(rows.map(({ line }) => line).toSorted());
    },
    TIMEOUT_MS,
  );
});

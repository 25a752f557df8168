import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { type OutageKind, OutageProxy } from '../fleet/proxy.ts';
import { deleteKeys } from '../fleet/run.ts';
import { sum } from '../statistics.ts';
import { audit, type Handling, type Outage, readJournals } from './audit.ts';
import { Member } from './members.ts';
import { LIMIT_PER_SECOND, openService, SECRET } from './service.ts';
import { type HeapUse, type InboxName, steadyNow } from './task.ts';

export const RECEIVERS = 4;
const FAULT_EVERY_MS = 7_000;
/** Everything works for at least this long between two faults. */
const RECOVERY_MS = 3_000;
const HOUR_MS = 3_600_000;
/** Long enough for `RedisLimiter` to continue without Redis, and short enough for commits, which are retried for 10 s. */
const REDIS_AWAY_MS = 3_000;
const FAILING_MS = 1_000;
const HAPPENS_EVERY_MS = 200;
const RESENDS_EVERY = 15;
/** The last webhooks and polls may take this long. */
const REST_MS = 120_000;

type Service = Awaited<ReturnType<typeof openService>>;
export type SoakResult = Awaited<ReturnType<typeof runSoak>>;

/** Creates a schema in PostgreSQL that only this soak uses. */
async function openPostgres(url: string) {
  const schema = `soak_${randomUUID().slice(0, 8)}`;
  const pool = new pg.Pool({ connectionString: url, max: 1 }).on('error', console.error);
  await pool.query(`CREATE SCHEMA ${schema}`);
  await pool.query(`CREATE TABLE ${schema}.handled_events (key text PRIMARY KEY)`);
  await pool.query(`CREATE TABLE ${schema}.effects (key text)`);
  await new PostgresDedupeStore({ pool, table: `${schema}.inbox` }).createTable();
  return {
    schema,
    endConnections: async () => {
      const end = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1';
      await pool.query(end, [schema]);
    },
    /** Reads the keys that callbacks wrote in committed transactions. */
    readEffects: async (): Promise<string[]> => {
      const { rows } = await pool.query<{ key: string }>(`SELECT key FROM ${schema}.effects`);
      return rows.map(({ key }) => key);
    },
    remove: async () => {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
      await pool.end();
    },
  };
}

/** Gives a fault access to everything that it can break. */
interface Stage {
  readonly service: Service;
  readonly redis: OutageProxy;
  /** Deletes all keys of the soak, as FLUSHALL does. */
  readonly flushRedis: () => Promise<void>;
  readonly postgres: Awaited<ReturnType<typeof openPostgres>>;
  /** Kills a receiver with SIGKILL and starts another in its place. */
  readonly killReceiver: () => Promise<void>;
  /** Moves the wall clock of every process by some milliseconds. */
  readonly shiftClocks: (byMs: number) => Promise<void>;
}

type Fault = (stage: Stage) => Promise<unknown>;

/** Makes calls fail for a while. */
function failing(failure: Parameters<Service['fail']>[0], forMs = FAILING_MS): Fault {
  return async ({ service }) => {
    const stop = service.fail(failure);
    await sleep(forMs);
    stop();
  };
}

/** Takes Redis away for a while. */
function withoutRedis(kind: OutageKind): Fault {
  return async ({ redis }) => {
    await redis.takeAway(kind);
    await sleep(REDIS_AWAY_MS);
    await redis.giveBack();
  };
}

/** The soak causes these faults one after the other. */
const FAULTS: Readonly<Record<string, Fault>> = {
  // This fault is shorter than its `Retry-After`, so the limiter pauses only once.
  '429 to every call': failing({ status: 429, retryAfterMs: 1_000 }, 500),
  'connections reset': failing({ kind: 'reset' }),
  'Redis refuses connections': withoutRedis('refused'),
  'bodies stall halfway': failing({ kind: 'stall' }),
  'a receiver killed': ({ killReceiver }) => killReceiver(),
  'bodies cut off': failing({ kind: 'badJson' }),
  'PostgreSQL connections ended': ({ postgres }) => postgres.endConnections(),
  'carried out, then reset': failing({ kind: 'commitThenDrop' }),
  'clocks set back an hour': ({ shiftClocks }) => shiftClocks(-HOUR_MS),
  'no response at all': failing({ kind: 'timeout' }),
  'Redis does not reply': withoutRedis('silent'),
  '502 with a page of HTML': failing({ kind: 'html' }),
  'FLUSHALL in Redis': async ({ flushRedis, service }) => {
    const from = steadyNow();
    // Record the flush before it happens, because calls may be refused at once.
    service.flushes.push({ name: 'FLUSHALL', from, until: from });
    await flushRedis();
  },
};

/**
 * Runs everything for a while and checks that each event was handled.
 *
 * @param directory - the folder for the journals
 */
export async function runSoak(
  minutes: number,
  { redisUrl, postgresUrl }: { readonly redisUrl: string; readonly postgresUrl: string },
  directory: string,
) {
  const redis = await OutageProxy.open(redisUrl);
  const postgres = await openPostgres(postgresUrl);
  const receivers: Member[] = [];
  const everyone: Member[] = [];
  const service = await openService(() => receivers.filter(({ isAlive }) => isAlive).map(({ url }) => url));
  let [calls, lastCallAt, longestGapMs] = [0, steadyNow(), 0];
  const noteCalls = (count: number) => {
    const now = steadyNow();
    longestGapMs = Math.max(longestGapMs, now - lastCallAt);
    lastCallAt = now;
    calls += count;
  };
  const start = async (role: 'poller' | 'receiver', place: number) => {
    const task = {
      name: `${role}-${everyone.length}-${place}`,
      role,
      baseUrl: service.url,
      limitPerSecond: LIMIT_PER_SECOND,
      processes: RECEIVERS + 1,
      redisUrl: redis.url,
      postgresUrl,
      schema: postgres.schema,
      secret: SECRET,
      trackerIds: service.trackerIds,
    };
    const member = await Member.start(task, directory, noteCalls);
    everyone.push(member);
    return member;
  };
  const stage: Stage = {
    ...{ service, redis, postgres },
    flushRedis: () => deleteKeys(redisUrl, postgres.schema),
    killReceiver: async () => {
      // The first receiver is never killed, because its heap is measured.
      const place = 1 + Math.floor(Math.random() * (RECEIVERS - 1));
      await receivers[place]?.kill();
      receivers[place] = await start('receiver', place);
    },
    shiftClocks: async (byMs) => {
      await Promise.all(everyone.map((member) => member.ask('shift', byMs)));
    },
  };
  try {
    for (let place = 0; place < RECEIVERS; place += 1) receivers.push(await start('receiver', place));
    const poller = await start('poller', RECEIVERS);
    const startedAt = steadyNow();
    const endsAt = startedAt + minutes * 60_000;
    lastCallAt = startedAt;
    const [outages, heaps] = await Promise.all([
      letThingsFail(stage, endsAt),
      measureHeaps([poller, ...receivers.slice(0, 1)], startedAt, endsAt),
      letEventsHappen(service, endsAt),
    ]);
    const seconds = (steadyNow() - startedAt) / 1_000;
    const unrested = await comeToRest(service, poller);
    const alive = everyone.filter(({ isAlive }) => isAlive);
    const endings = await Promise.all(alive.map((member) => member.finish()));
    const breakdowns = [...unrested, ...everyone.flatMap(({ breakdown }) => breakdown ?? [])];
    const reports = endings.flatMap((ending) => ending.calls ?? []);
    const rejections = reports.flatMap(({ rejected }) => Object.entries(rejected));
    return {
      ...{ seconds, calls, outages, heaps, breakdowns, longestGapSeconds: longestGapMs / 1_000 },
      ...{
        events: service.happened.length,
        refused: service.refused,
        counts: service.counts,
        flushes: service.flushes,
      },
      ...(await auditAll(service, postgres, everyone)),
      rejected: [...new Set(rejections.map(([name]) => name))].map((name) => ({
        name,
        times: sum(rejections.map(([each, times]) => (each === name ? times : 0))),
      })),
      longestCallSeconds: Math.max(...reports.map(({ longestCallMs }) => longestCallMs)) / 1_000,
      givenUp: sum(reports.map(({ givenUp }) => givenUp)),
      notEnded: endings.filter(({ hasEnded }) => !hasEnded).length,
    };
  } finally {
    await Promise.all(everyone.filter(({ isAlive }) => isAlive).map((member) => member.kill()));
    await service.close();
    await redis.close();
    await deleteKeys(redisUrl, postgres.schema);
    await postgres.remove();
  }
}

/** Audits every event at each inbox and in the polls. */
async function auditAll(service: Service, postgres: Stage['postgres'], everyone: readonly Member[]) {
  const journals = readJournals(everyone.map(({ journal, killedAt }) => ({ file: journal, killedAt })));
  const effects = new Map<string, Handling[]>();
  for (const key of await postgres.readEffects())
    effects.set(key, [...(effects.get(key) ?? []), { at: 0, wasCut: false }]);
  const expected = (prefix: string) => service.happened.map((key) => `${prefix}tracking/events:${key}`);
  const polled = [...service.onlyPolled, ...service.happened].map((key) => `polled ${key}`);
  return {
    inboxes: {
      redis: audit(expected('handled redis '), journals, service.flushes),
      postgres: audit(expected('handled postgres '), journals, []),
      transactional: audit(expected(''), effects, []),
    } satisfies Record<InboxName, unknown>,
    polling: audit(polled, journals, []),
  };
}

async function letThingsFail(stage: Stage, endsAt: number): Promise<Outage[]> {
  const outages: Outage[] = [];
  await sleep(FAULT_EVERY_MS);
  const faults = Object.entries(FAULTS);
  for (let turn = 0; steadyNow() + FAULT_EVERY_MS < endsAt; turn += 1) {
    const [name, fault] = faults[turn % faults.length] ?? [];
    if (name === undefined || fault === undefined) break;
    const from = steadyNow();
    await fault(stage);
    const until = steadyNow();
    outages.push({ name, from, until });
    console.error(`${name}: ${((until - from) / 1_000).toFixed(1)} s`);
    await sleep(Math.max(RECOVERY_MS, from + FAULT_EVERY_MS - until));
  }
  return outages;
}

const UNKNOWN_HEAP: HeapUse = { objects: Number.NaN, code: Number.NaN, keys: Number.NaN };

/** Measures at 20% of the time, when caches are full and code is compiled, and at the end. */
async function measureHeaps(members: readonly Member[], startedAt: number, endsAt: number) {
  const samples: HeapUse[][] = [];
  for (const share of [0.2, 1]) {
    await sleep(Math.max(0, startedAt + (endsAt - startedAt) * share - steadyNow()));
    const bytes = await Promise.all(members.map((member) => member.ask('heap')));
    samples.push(bytes.map((each) => each ?? UNKNOWN_HEAP));
  }
  return members.map((_, index) => ({
    before: samples[0]?.[index] ?? UNKNOWN_HEAP,
    after: samples[1]?.[index] ?? UNKNOWN_HEAP,
  }));
}

async function letEventsHappen(service: Service, endsAt: number): Promise<void> {
  for (let turn = 1; steadyNow() < endsAt; turn += 1) {
    service.happen();
    if (turn % RESENDS_EVERY === 0) await service.resend();
    await sleep(HAPPENS_EVERY_MS);
  }
}

/** Waits until every webhook is accepted and every tracker polled again; returns the failures in words. */
async function comeToRest(service: Service, poller: Member): Promise<string[]> {
  const late = sleep(REST_MS, 'late', { ref: false });
  const [sent, polled] = await Promise.all([
    Promise.race([service.stopSending(), late]),
    Promise.race([poller.ask('drain'), late]),
  ]);
  return [
    ...(sent === 'late' ? ['no receiver accepted the last webhooks'] : []),
    ...(polled === 'late' ? ['not every tracker was polled again'] : []),
  ];
}

import { spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe } from 'vitest';
import { createDatabase, createEmbeddedDatabase, type TestDatabase } from './test-database.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Why the tests of a suite are skipped here. */
    skipReason?: string;
  }
}

/** A server that suites need, and a check whether it responds. */
interface Service {
  readonly name: string;
  readonly variable: string;
  readonly url: string;
  probe(url: string): Promise<unknown>;
}

/** A busy machine may need many seconds to respond. Where nothing listens, the connection is refused at once. */
const MAX_WAIT_MS = 30_000;

const REDIS: Service = {
  name: 'Redis',
  variable: 'REDIS_URL',
  url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
  probe: async (url) => {
    const limits = { connectTimeout: MAX_WAIT_MS, commandTimeout: MAX_WAIT_MS };
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, ...limits });
    // Without a listener this client prints every failed attempt; the rejection below is enough.
    redis.on('error', () => {});
    try {
      await redis.connect();
      await redis.ping();
    } finally {
      redis.disconnect();
    }
  },
};

const POSTGRES: Service = {
  name: 'PostgreSQL',
  variable: 'DATABASE_URL',
  url: process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test',
  probe: async (url) => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: MAX_WAIT_MS });
    await client.connect();
    await client.end();
  },
};

/** A suite on the Redis of `REDIS_URL`; skipped if it does not respond, unless `CI` is set. */
export function describeWithRedis(title: string, suite: (url: string) => void): Promise<void> {
  return describeWith(REDIS, title, suite);
}

/** A suite on the PostgreSQL of `DATABASE_URL`; skipped if it does not respond, unless `CI` is set. */
export function describeWithPostgres(title: string, suite: (url: string) => void): Promise<void> {
  return describeWith(POSTGRES, title, suite);
}

/**
 * A suite whose tests need nothing of Redis but its scripts. It gets the URL of `REDIS_URL`, or undefined if that does not respond,
 * unless `CI` is set; then the suite uses the emulator of Redis.
 */
export async function describeWithAnyRedis(
  title: string,
  suite: (url: string | undefined) => void,
): Promise<void> {
  const reason = await findReason(REDIS);
  if (reason !== undefined) failInCI(title, reason);
  describe(title, () => suite(reason === undefined ? REDIS.url : undefined));
}

/**
 * A suite whose tests need one connection only. They create databases on the PostgreSQL of `DATABASE_URL`, or inside this process
 * if it does not respond, unless `CI` is set.
 */
export async function describeWithAnyPostgres(
  title: string,
  suite: (create: () => Promise<TestDatabase>) => void,
): Promise<void> {
  const reason = await findReason(POSTGRES);
  if (reason !== undefined) failInCI(title, reason);
  const create = reason === undefined ? () => createDatabase(POSTGRES.url) : createEmbeddedDatabase;
  describe(title, () => suite(create));
}

/** A suite that runs a server of its own; skipped if the program of the server is not installed, unless `CI` is set. */
export function describeWithProgram(
  program: 'redis-server' | 'postgres' | 'pgbouncer',
  title: string,
  suite: () => void,
): void {
  const reason = findMissing(program);
  if (reason === undefined) describe(title, suite);
  else skipUnlessCI(title, reason, suite);
}

/** A suite that runs Prometheus' `promtool`; skipped if it is not installed, because it comes only with the whole metrics server. */
export function describeWithPromtool(title: string, suite: () => void): void {
  const reason = findMissing('promtool');
  if (reason === undefined) describe(title, suite);
  else skip(title, reason, suite);
}

function findMissing(program: string): string | undefined {
  const isInstalled = spawnSync(program, ['--version']).status === 0;
  return isInstalled ? undefined : `the program ${program} is not installed`;
}

async function describeWith(service: Service, title: string, suite: (url: string) => void): Promise<void> {
  const reason = await findReason(service);
  if (reason === undefined) describe(title, () => suite(service.url));
  else skipUnlessCI(title, reason, () => suite(service.url));
}

/** Each service is tried once, because an address that drops packets costs half a minute. */
const reasons = new Map<Service, Promise<string | undefined>>();

/** Returns why a service cannot be used, or `undefined` if it responds. */
function findReason(service: Service): Promise<string | undefined> {
  const { name, variable, url, probe } = service;
  const known = reasons.get(service);
  if (known !== undefined) return known;
  const reason = probe(url).then(
    () => undefined,
    () => `${name} does not respond at ${new URL(url).host}; set ${variable}`,
  );
  reasons.set(service, reason);
  return reason;
}

function failInCI(title: string, reason: string): void {
  if (process.env['CI'] === 'true') throw new Error(`Expected to run "${title}", but ${reason}`);
}

function skipUnlessCI(title: string, reason: string, suite: () => void): void {
  failInCI(title, reason);
  skip(title, reason, suite);
}

function skip(title: string, reason: string, suite: () => void): void {
  console.warn(`Skipped "${title}": ${reason}`);
  // scripts/check.ts counts the skipped tests of each reason.
  describe.skip(title, { meta: { skipReason: reason } }, suite);
}

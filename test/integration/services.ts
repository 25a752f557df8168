import { Redis } from 'ioredis';
import pg from 'pg';
import { describe } from 'vitest';

/** A server that suites need, and a check whether it responds. */
interface Service {
  readonly name: string;
  readonly variable: string;
  readonly url: string;
  probe(url: string): Promise<unknown>;
}

const REDIS: Service = {
  name: 'Redis',
  variable: 'REDIS_URL',
  url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
  probe: async (url) => {
    const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 2_000 });
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
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
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

async function describeWith(service: Service, title: string, suite: (url: string) => void): Promise<void> {
  const { name, variable, url, probe } = service;
  try {
    await probe(url);
  } catch (error) {
    const { host } = new URL(url);
    if (process.env['CI'] === 'true') {
      throw new Error(`Expected ${name} to answer at ${host}; set ${variable}`, { cause: error });
    }
    console.warn(`Skipped "${title}": no ${name} answers at ${host}; set ${variable} to run it.`);
    describe.skip(title, () => suite(url));
    return;
  }
  describe(title, () => suite(url));
}

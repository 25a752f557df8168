import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { PostgresDedupeStore } from '../../src/postgres/index.ts';
import { freePort, ready } from '../../test/integration/redis-limiter/own-redis.ts';

/** A Redis of the soak's own that keeps what it was told while it is down, as one in production does. */
export class SoakRedis {
  readonly url: string;
  readonly #port: number;
  readonly #directory: string;
  #process: ChildProcess;

  private constructor(port: number, directory: string) {
    this.#port = port;
    this.#directory = directory;
    this.url = `redis://127.0.0.1:${port}`;
    this.#process = this.#spawn();
  }

  static async start(): Promise<SoakRedis> {
    const redis = new SoakRedis(await freePort(), await mkdtemp(join(tmpdir(), 'soak-redis-')));
    await ready(redis.#process);
    return redis;
  }

  async stop(): Promise<void> {
    const exited = once(this.#process, 'exit');
    this.#process.kill();
    await exited;
  }

  async startAgain(): Promise<void> {
    this.#process = this.#spawn();
    await ready(this.#process);
  }

  /** Connections stand, and nothing comes. */
  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  async forgetAll(): Promise<void> {
    const redis = new Redis(this.url);
    await redis.flushall();
    redis.disconnect();
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true });
  }

  #spawn(): ChildProcess {
    const settings = ['--save', '', '--appendonly', 'yes', '--dir', this.#directory];
    const given = ['--port', String(this.#port), '--bind', '127.0.0.1', ...settings];
    const started = spawn('redis-server', given, { stdio: ['ignore', 'pipe', 'ignore'] });
    // A soak that is broken off leaves nobody behind.
    const kill = () => started.kill('SIGKILL');
    process.once('exit', kill);
    started.once('exit', () => process.off('exit', kill));
    return started;
  }
}

/** A schema of the soak's own in a PostgreSQL that others use, too. */
export class SoakPostgres {
  readonly url: string;
  readonly schema = `soak_${randomUUID().slice(0, 8)}`;
  /** Connections that go by this name are the soak's to end. */
  readonly applicationName = this.schema;
  readonly #pool: pg.Pool;

  private constructor(url: string) {
    this.url = url;
    this.#pool = new pg.Pool({ connectionString: url, max: 1 });
  }

  static async open(url: string): Promise<SoakPostgres> {
    const postgres = new SoakPostgres(url);
    const { schema } = postgres;
    await postgres.#pool.query(`CREATE SCHEMA ${schema}`);
    await postgres.#pool.query(
      `CREATE TABLE ${schema}.effects (key text, at timestamptz DEFAULT clock_timestamp())`,
    );
    for (const table of ['inbox', 'transactional_inbox'])
      await new PostgresDedupeStore({ pool: postgres.#pool, table: `${schema}.${table}` }).createTable();
    return postgres;
  }

  /** @returns how many connections were ended */
  async endConnections(): Promise<number> {
    const { rows } = await this.#pool.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
      [this.applicationName],
    );
    return rows.length;
  }

  /** What handlers wrote in transactions that lasted. */
  async effects(): Promise<{ key: string; at: number }[]> {
    const { rows } = await this.#pool.query(
      `SELECT key, extract(epoch FROM at)::float8 * 1000 AS at FROM ${this.schema}.effects`,
    );
    return rows;
  }

  async remove(): Promise<void> {
    await this.#pool.query(`DROP SCHEMA ${this.schema} CASCADE`);
    await this.#pool.end();
  }
}

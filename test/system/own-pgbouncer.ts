import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../integration/redis-limiter/own-redis.ts';

/** PgBouncer refuses to run as root, so root runs it as `nobody`. */
const NOBODY = 65_534;
const USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/** A PgBouncer for one test, which lends a connection of its server for one transaction at a time. */
export interface OwnPgBouncer {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts a PgBouncer in transaction mode on a free port.
 *
 * @param serverUrl - the PostgreSQL behind it
 * @param poolSize - how many connections of the server all clients share
 */
export async function startOwnPgBouncer(serverUrl: string, poolSize: number): Promise<OwnPgBouncer> {
  const { hostname, port: serverPort, username, password, pathname } = new URL(serverUrl);
  const directory = await mkdtemp(join(tmpdir(), 'pgbouncer-'));
  const port = await findFreePort();
  const database = pathname.slice(1);
  const server = `host=${hostname} port=${serverPort || 5432} dbname=${database} user=${username}`;
  const settings = [
    '[databases]',
    `${database} = ${server}${password && ` password=${password}`}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    `unix_socket_dir = ${directory}`,
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${poolSize}`,
  ];
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(file, settings.join('\n'));
  await chmod(directory, 0o777);
  const bouncer = spawn('pgbouncer', [file], { ...USER, stdio: ['ignore', 'ignore', 'pipe'] });
  // An interrupted test run ends its PgBouncer, too.
  const kill = () => bouncer.kill();
  process.once('exit', kill);
  await ready(bouncer);
  return {
    url: `postgres://${username}@127.0.0.1:${port}/${database}`,
    stop: async () => {
      process.off('exit', kill);
      const exited = once(bouncer, 'exit');
      bouncer.kill('SIGTERM');
      await exited;
      await rm(directory, { recursive: true });
    },
  };
}

function ready(bouncer: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    bouncer.once('error', reject);
    bouncer.once('exit', (code) => reject(new Error(`Expected PgBouncer to start, got exit code ${code}`)));
    bouncer.stderr?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('process up')) resolve();
    });
  });
}

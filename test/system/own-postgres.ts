import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '../integration/redis-limiter/own-redis.ts';

/** PostgreSQL refuses to run as root, so root runs it as `nobody`. */
const NOBODY = 65_534;
const USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

/** A PostgreSQL for one test, which the test may kill and start again. */
export interface OwnPostgres {
  readonly url: string;
  start(): Promise<void>;
  /** Ends all connections without a word of farewell, as a crash does. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** Creates a PostgreSQL on a free port, and starts it. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const directory = await mkdtemp(join(tmpdir(), 'postgres-'));
  if (USER.uid !== undefined) await chown(directory, USER.uid, USER.gid);
  const data = join(directory, 'data');
  const port = await findFreePort();
  const options = ['--no-locale', '--encoding=UTF8', '--auth=trust', '--username=test', '--no-sync'];
  const created = spawn('initdb', ['-D', data, ...options], { ...USER, stdio: 'ignore' });
  const [code] = await once(created, 'exit');
  if (code !== 0) throw new Error(`Expected initdb to succeed, got exit code ${code}`);
  let server: ChildProcess | undefined;
  // An interrupted test run ends its PostgreSQL, too.
  const quit = () => server?.kill('SIGQUIT');
  process.once('exit', quit);
  const start = async () => {
    const settings = ['-p', `${port}`, '-k', directory, '-c', 'listen_addresses=127.0.0.1', '-F'];
    server = spawn('postgres', ['-D', data, ...settings], { ...USER, stdio: ['ignore', 'ignore', 'pipe'] });
    await ready(server);
  };
  const kill = async () => {
    if (server === undefined || server.exitCode !== null) return;
    const exited = once(server, 'exit');
    server.kill('SIGQUIT');
    await exited;
  };
  await start();
  return {
    url: `postgres://test@127.0.0.1:${port}/postgres`,
    start,
    kill,
    remove: async () => {
      process.off('exit', quit);
      await kill();
      await rm(directory, { recursive: true });
    },
  };
}

function ready(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', (code) => reject(new Error(`Expected PostgreSQL to start, got exit code ${code}`)));
    server.stderr?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('ready to accept connections')) resolve();
    });
  });
}

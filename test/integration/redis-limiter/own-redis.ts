import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A Redis for one test, which the test may stop and reconfigure. */
export interface OwnRedis {
  readonly port: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts a Redis on a free port, without persistence.
 *
 * @param settings - more arguments of `redis-server`
 */
export async function startOwnRedis(...settings: string[]): Promise<OwnRedis> {
  let port = await findFreePort();
  // A node of a cluster also listens on its port plus 10,000.
  while (port > 55_000) port = await findFreePort();
  const directory = await mkdtemp(join(tmpdir(), 'redis-'));
  const base = ['--port', String(port), '--save', '', '--appendonly', 'no', '--dir', directory];
  const server = spawn('redis-server', [...base, ...settings], { stdio: ['ignore', 'pipe', 'ignore'] });
  // An interrupted test run ends its Redis, too.
  const kill = () => server.kill();
  process.once('exit', kill);
  await ready(server);
  return {
    port,
    stop: async (signal) => {
      process.off('exit', kill);
      const exited = once(server, 'exit');
      server.kill(signal);
      await exited;
      await rm(directory, { recursive: true });
    },
  };
}

/** Resolves when a `redis-server` takes connections. Rejects when it does not start. */
function ready(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', (code) => reject(new Error(`Expected Redis to start, got exit code ${code}`)));
    server.stdout?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('Ready to accept connections')) resolve();
    });
  });
}

/** Finds a free port. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens on TCP has an address of this form.
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

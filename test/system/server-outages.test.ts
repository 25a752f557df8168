// Servers that die under a running program. Each program is a process of its own, because an uncaught error would end it.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { bundled } from '../../scripts/support/bundled.ts';
import { startOwnRedis } from '../integration/redis-limiter/own-redis.ts';
import { describeWithProgram } from '../integration/services.ts';
import { snippets } from '../readme/support/documents.ts';
import { startOwnPostgres } from './own-postgres.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SECRET = 'whsec-outage';

/** The program of the README, which exports its handler as `webhooks`. */
const README = snippets().find(({ staged }) => staged.includes('redis'))?.code ?? '';
const LISTENER = ".on('error', console.error)";

const IOREDIS = `
import { Redis } from 'ioredis';
import { RedisDedupeStore } from 'tracking-client/redis';
import { createWebhookHandler } from 'tracking-client/webhooks';
const store = new RedisDedupeStore({ redis: new Redis(process.env.REDIS_URL!) });
export const webhooks = createWebhookHandler({ secret: process.env.TRACKING_WEBHOOK_SECRET, store, onEvent() {} });
`;

const POSTGRES = `
import pg from 'pg';
import { PostgresDedupeStore } from 'tracking-client/postgres';
import { createWebhookHandler } from 'tracking-client/webhooks';
const store = new PostgresDedupeStore({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) });
await store.createTable();
export const webhooks = createWebhookHandler({ secret: process.env.TRACKING_WEBHOOK_SECRET, store, onEvent() {} });
`;

/** Sends a webhook with a new event for each message, and replies with the status of the response. */
const SENDER = `
import { webhooks } from './program.ts';
let count = 0;
process.on('message', async () => {
  const body = JSON.stringify({ trackerId: 't', events: [{ eventId: String(count++) }] });
  const headers = { authorization: 'Bearer ${SECRET}', 'content-type': 'application/json' };
  const { status } = await webhooks(new Request('http://shop.test/webhooks', { method: 'POST', headers, body }));
  process.send!(status);
});
process.send!('ready');
`;

class Program {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  stderr = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#exited = once(child, 'exit');
    child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
  }

  /** Resolves to the next message, or rejects when the program ends. */
  async hear(): Promise<unknown> {
    const exit = this.#exited.then(() => Promise.reject(new Error(`The program ended: ${this.stderr}`)));
    const [message] = await Promise.race([once(this.#child, 'message'), exit]);
    return message;
  }

  /** Sends webhooks, one after the other, until the program responds with this status. */
  async responds(status: number): Promise<void> {
    const seen: unknown[] = [];
    while (seen.at(-1) !== status) {
      if (seen.length === 100) throw new Error(`Expected ${status}, got ${seen.join(', ')}`);
      const reply = this.hear();
      this.#child.send('webhook');
      seen.push(await reply);
      await sleep(20);
    }
  }
}

async function run(code: string, environment: Readonly<Record<string, string>>): Promise<Program> {
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'outage-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'program.ts'), code);
  await writeFile(join(folder, 'sender.ts'), SENDER);
  const env = {
    ...{ PATH: process.env['PATH'], TRACKING_WEBHOOK_SECRET: SECRET, ...environment },
    ...{ TRACKING_BASE_URL: 'http://127.0.0.1:9/v1', TRACKING_API_KEY: 'key-of-the-test' },
  };
  const file = await bundled(join(folder, 'sender.ts'));
  const child = fork(file, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const program = new Program(child);
  await program.hear();
  return program;
}

describeWithProgram('redis-server', 'Redis is killed, and comes back', () => {
  test.each([
    ['the program of the README', README, 'connect ECONNREFUSED'],
    [
      'the program of the README without its listener',
      README.replace(LISTENER, ''),
      '[tracking-client] The Redis client reported an error: ',
    ],
    ['a client of ioredis', IOREDIS, '[tracking-client] The Redis client reported an error: '],
  ])('%s → lives, responds with 503, then with 200', { timeout: 60_000 }, async (_title, code, line) => {
    expect(README).toContain(LISTENER);
    const redis = await startOwnRedis();
    const program = await run(code, { REDIS_URL: `redis://127.0.0.1:${redis.port}` });
    await program.responds(200);
    await redis.stop('SIGKILL');
    await program.responds(503);
    const again = await startOwnRedis('--port', String(redis.port));
    onTestFinished(() => again.stop());
    await program.responds(200);
    expect(program.stderr).toContain(line);
  });
});

describeWithProgram('postgres', 'PostgreSQL is killed, and comes back', () => {
  test.each([
    [
      'a pool with a listener',
      POSTGRES.replace('}) });', `})${LISTENER} });`),
      'Connection terminated unexpectedly',
    ],
    ['a pool without a listener', POSTGRES, '[tracking-client] The PostgreSQL client reported an error: '],
  ])('%s → lives, responds with 503, then with 200', { timeout: 60_000 }, async (_title, code, line) => {
    const postgres = await startOwnPostgres();
    onTestFinished(() => postgres.remove());
    const program = await run(code, { DATABASE_URL: postgres.url });
    await program.responds(200);
    await postgres.kill();
    await program.responds(503);
    await postgres.start();
    await program.responds(200);
    expect(program.stderr).toContain(line);
  });
});

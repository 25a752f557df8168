import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { PostgresDedupeStore } from '../../../src/postgres/index.ts';
import { RedisDedupeStore, RedisLimiter } from '../../../src/redis/index.ts';
import { useVirtualTime } from '../../support/virtual-time.ts';

const DOWN = new Error('connect ECONNREFUSED 127.0.0.1:6379');

/** An object that passes for a client of Redis and for a pool. */
function makeClient() {
  const reply = async () => [];
  const query = async () => ({ rows: [] });
  return Object.assign(new EventEmitter(), { eval: reply, evalSha: reply, query });
}

type Client = ReturnType<typeof makeClient>;

function makeLogger() {
  return { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
}

function captureConsole() {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  return warn;
}

test.each([
  ['Redis', 'RedisDedupeStore', (redis: Client) => new RedisDedupeStore({ redis })],
  ['Redis', 'RedisLimiter', (redis: Client) => new RedisLimiter({ redis })],
  ['PostgreSQL', 'PostgresDedupeStore', (pool: Client) => new PostgresDedupeStore({ pool })],
])(
  'errors of a %s client that only a %s uses → one line a minute on the console',
  async (server, _, create) => {
    const clock = useVirtualTime();
    const warn = captureConsole();
    const client = makeClient();
    create(client);
    for (const waitMs of [0, 1_000, 58_999, 1]) {
      await clock.advance(waitMs);
      client.emit('error', DOWN);
    }
    const line = `[tracking-client] The ${server} client reported an error: ${DOWN.message}`;
    expect(warn.mock.calls).toEqual([[line], [line]]);
  },
);

test('a client that two copies of the package use → one line', async () => {
  const warn = captureConsole();
  const client = makeClient();
  new RedisDedupeStore({ redis: client });
  const source = '../../../src/observability/logger.ts?copy';
  // The query makes vitest load the file again.
  const copy: typeof import('../../../src/observability/logger.ts') = await import(source);
  copy.reportDriverErrors('Redis', client);
  client.emit('error', DOWN);
  expect(warn).toHaveBeenCalledOnce();
});

test('a client with a listener of the program, added before or after → no line', () => {
  const warn = captureConsole();
  const client = makeClient();
  const added = vi.fn();
  new RedisDedupeStore({ redis: client });
  client.on('error', added);
  client.emit('error', DOWN);
  expect([added.mock.calls.length, warn.mock.calls.length]).toEqual([1, 0]);
  client.off('error', added);
  client.emit('error', DOWN);
  expect(warn).toHaveBeenCalledOnce();
});

test.each([
  ['before', (redis: Client) => void new RedisDedupeStore({ redis }), () => {}],
  ['after', () => {}, (redis: Client) => void new RedisDedupeStore({ redis })],
])(
  'a store made %s a limiter with a logger, on one client → the line goes to that logger',
  (_title, before, after) => {
    const warn = captureConsole();
    const logger = makeLogger();
    const client = makeClient();
    before(client);
    new RedisLimiter({ redis: client, logger });
    after(client);
    client.emit('error', DOWN);
    expect([logger.warn.mock.calls.length, warn.mock.calls.length]).toEqual([1, 0]);
  },
);

test('a client that emits no events → no error', () => {
  const { query } = makeClient();
  expect(() => new PostgresDedupeStore({ pool: { query } })).not.toThrow();
});

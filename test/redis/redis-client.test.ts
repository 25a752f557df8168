import { createClient } from 'redis';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { type RedisClient, RedisDedupeStore, RedisLimiter } from '../../src/redis/index.ts';
import { toAcquire } from '../limiter/make-limiter.ts';
import { useVirtualTime } from '../support/virtual-time.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** What the store and the limiter do with a client: each makes one call. */
const users: readonly [title: string, use: (redis: RedisClient) => Promise<unknown>][] = [
  [
    'RedisDedupeStore',
    (redis) => new RedisDedupeStore({ redis }).claim(['a', 'b'], { token: 't', leaseMs: 1_000 }),
  ],
  ['RedisLimiter', (redis) => new RedisLimiter({ redis, logger: silent }).acquire(toAcquire(10))],
];

/** A client whose scripts have this outcome. */
function ioredis(run: () => unknown): RedisClient {
  // Safe cast: callers without types may pass such clients.
  return { eval: run, evalsha: run } as unknown as RedisClient;
}

describe.each(users)('%s', (_title, use) => {
  test.each<[string, unknown]>([
    ['a Promise of a client', Promise.resolve(ioredis(async () => []))],
    ['a cache', { get() {}, set() {}, del() {} }],
    ['a Map', new Map()],
    ['a client that runs scripts under another name', { eval() {}, customCommand() {} }],
    ['the class instead of a client', class Redis {}],
    ['null', null],
  ])('%s → ConfigurationError at construction', (_name, redis) => {
    // Safe cast: callers without types may pass such values.
    expect(() => use(redis as RedisClient)).toThrow(
      /^Expected `redis` to be a client of `redis` or `ioredis`, got /,
    );
  });

  test.each<[string, RedisClient, string]>([
    ['takes callbacks and returns nothing', ioredis(() => undefined), 'to return a promise, got undefined'],
    ['takes callbacks and returns a boolean', ioredis(() => false), 'to return a promise, got a boolean'],
    ['returns its reply', ioredis(() => [1, 1]), 'to return a promise, got an array of 2 items'],
    [
      'throws because it takes a list of keys',
      ioredis(() => {
        throw new TypeError('keys is not iterable');
      }),
      'to accept the arguments of a script, got the TypeError "keys is not iterable"',
    ],
    [
      'rejects because it takes a list of keys',
      ioredis(async () => {
        throw new TypeError('args.map is not a function');
      }),
      'to accept the arguments of a script, got the TypeError "args.map is not a function"',
    ],
    ['replies with text', ioredis(async () => 'OK'), 'numbers, got a string of 2 characters'],
    ['replies with null', ioredis(async () => null), 'numbers, got null'],
    ['wraps its replies', ioredis(async () => ({ result: [1, 1] })), 'numbers, got an object'],
    ['replies with a list of texts', ioredis(async () => ['OK', 'OK']), 'numbers, got an array of 2 items'],
    ['replies with fewer numbers', ioredis(async () => [1]), 'numbers, got an array of 1 item'],
    [
      'replies with more numbers',
      ioredis(async () => [1, 1, 1, 1, 1, 1]),
      'numbers, got an array of 6 items',
    ],
  ])('a client that %s → ConfigurationError at the first call', async (_name, redis, expected) => {
    const error: unknown = await use(redis).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({
      option: 'redis',
      message: expect.stringMatching(
        /^Expected the client `redis` to .*, got .*; pass a client of `ioredis`, or /,
      ),
    });
    expect(String(error)).toContain(expected);
  });

  test('the `legacy()` client of redis → ConfigurationError at the first call', async () => {
    const client = createClient().on('error', () => {});
    // @ts-expect-error: its methods return no promises
    await expect(use(client.legacy())).rejects.toThrow('to return a promise, got undefined');
  });

  test('a connection that fails with a TypeError that has a cause → no ConfigurationError', async () => {
    const clock = useVirtualTime();
    const cause = new Error('connect ECONNREFUSED');
    const redis = ioredis(async () => Promise.reject(new TypeError('fetch failed', { cause })));
    const outcome = use(redis).catch((error: unknown) => error);
    await clock.advance(5_000);
    expect(await outcome).not.toBeInstanceOf(ConfigurationError);
  });
});

test('RedisLimiter with a client of which one reply is wrong → the later calls get tokens', async () => {
  const replies: unknown[] = ['OK', [10, 9, 0, 1, 0]];
  const limiter = new RedisLimiter({ redis: ioredis(async () => replies.shift()), logger: silent });
  await expect(limiter.acquire(toAcquire(10))).rejects.toThrow(ConfigurationError);
  await expect(limiter.acquire(toAcquire(10))).resolves.toMatchObject({ tokensLeft: 9 });
});

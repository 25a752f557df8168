import { createClient } from 'redis';
import { describe, expect, test, vi } from 'vitest';
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
      /^Expected `redis` to be a client of `redis` or `ioredis`, got |^`redis` is a Promise; await it/,
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

describe('a replica behind the connection', () => {
  const refusals = [
    "READONLY You can't write against a read only replica. script: 5f2, on @user_script:7.",
    "ERR Error running script (call to f_5f2): @user_script:7: -READONLY You can't write against a read only slave.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
  ];

  /** A client of ioredis whose scripts have these outcomes, and then succeed. */
  function makeIoredis(outcomes: string[], overrides: object = {}) {
    const run = vi.fn(async () => {
      const message = outcomes.shift();
      if (message !== undefined) throw new Error(message);
      return [1];
    });
    const options = { retryStrategy: () => 50 };
    const disconnect = vi.fn();
    const redis = { status: 'ready', options, disconnect, eval: run, evalsha: run, ...overrides };
    // Safe cast: the package uses no other members of a client.
    const store = new RedisDedupeStore({ redis: redis as unknown as RedisClient });
    const claim = () => store.claim(['a'], { token: 't', leaseMs: 1_000 });
    return { run, disconnect, claim };
  }
  const acquired = [{ status: 'acquired', attempt: 1 }];

  test.each(refusals)('%s → ioredis reconnects, and the claim succeeds', async (refusal) => {
    const { claim, disconnect } = makeIoredis([refusal]);
    expect(await claim()).toEqual(acquired);
    expect(disconnect.mock.calls).toEqual([[true]]);
  });

  test('three claims at once → one reconnect, and all succeed', async () => {
    const { claim, disconnect } = makeIoredis([...refusals.slice(0, 3)]);
    expect(await Promise.all([claim(), claim(), claim()])).toEqual([acquired, acquired, acquired]);
    expect(disconnect).toHaveBeenCalledTimes(1);
  });

  test('the address still leads to a replica → rejects with advice, and reconnects every ten seconds at most', async () => {
    const clock = useVirtualTime();
    const [refusal = ''] = refusals;
    const { claim, disconnect } = makeIoredis(Array.from({ length: 6 }, () => refusal));
    await expect(claim()).rejects.toThrow(/READONLY.*connect it to the primary.*`retryStrategy`/);
    await expect(claim()).rejects.toThrow(/connect it to the primary/);
    expect(disconnect).toHaveBeenCalledTimes(1);
    await clock.advance(10_000);
    await expect(claim()).rejects.toThrow(/connect it to the primary/);
    expect(disconnect).toHaveBeenCalledTimes(2);
  });

  test.each([
    ['a client of ioredis that may not reconnect', { options: { retryStrategy: null } }],
    ['a cluster of ioredis', { options: { clusterRetryStrategy: () => 50 } }],
    ['a client without `disconnect`', { disconnect: undefined }],
  ])('%s → rejects with advice, and nothing is sent again', async (_title, overrides) => {
    const [refusal = ''] = refusals;
    const { claim, run, disconnect } = makeIoredis([refusal], overrides);
    const error: unknown = await claim().catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      message: expect.stringMatching(/READONLY.*connect it to the primary.*`retryStrategy`/),
      cause: { message: refusal },
    });
    expect(run).toHaveBeenCalledTimes(1);
    expect(disconnect).not.toHaveBeenCalled();
  });

  test('a client that is already reconnecting → the claim waits for it', async () => {
    const { claim, disconnect } = makeIoredis([...refusals.slice(0, 1)], { status: 'reconnecting' });
    expect(await claim()).toEqual(acquired);
    expect(disconnect).not.toHaveBeenCalled();
  });

  test.each([
    'LOADING Redis is loading the dataset in memory',
    'CLUSTERDOWN The cluster is down',
    'NOREPLICAS Not enough good replicas to write.',
    'MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.',
    "OOM command not allowed when used memory > 'maxmemory'.",
    'BUSY Redis is busy running a script.',
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'NOAUTH Authentication required.',
    'ERR unknown command READONLY',
  ])('%s → rejects with this error, no reconnect, nothing is sent again', async (message) => {
    const { claim, run, disconnect } = makeIoredis([message]);
    await expect(claim()).rejects.toThrow(new Error(message));
    expect(run).toHaveBeenCalledTimes(1);
    expect(disconnect).not.toHaveBeenCalled();
  });
});

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Cluster, Redis } from 'ioredis';
import { createClient, createClientPool, createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OutageProxy } from '../../bench/fleet/proxy.ts';
import { ConnectionError } from '../../src/errors.ts';
import type { AcquireOptions, Ticket } from '../../src/limiter/limiter.ts';
import { type RedisClient, RedisLimiter, type RedisLimiterOptions } from '../../src/redis/index.ts';
import { keysOf } from '../../src/redis/limiter/exchange.ts';
import { hasRedisServer, type OwnRedis, startOwnRedis } from './redis-limiter/own-redis.ts';
import { describeWithRedis } from './services.ts';

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

await describeWithRedis('RedisLimiter on a real Redis', (url) => {
  const keyPrefix = `test:${randomUUID()}:`;
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(url);
  });
  afterAll(async () => {
    for await (const keys of admin.scanStream({ match: `${keyPrefix}*`, count: 1_000 })) {
      if (keys.length > 0) await admin.del(...keys);
    }
    admin.disconnect();
  });

  /** Processes of one account, each with a limiter of its own, on a bucket that no other test uses. */
  function makeFleet(options: Partial<RedisLimiterOptions> = {}) {
    const bucket = {
      baseUrl: 'https://api.example.test/v1',
      account: randomUUID(),
      endpoint: 'trackers.get',
    };
    const [leases = '', waiting = ''] = keysOf(keyPrefix, bucket);
    const join = () => new RedisLimiter({ redis: admin, keyPrefix, logger: silent, ...options });
    const asked = (overrides: Partial<AcquireOptions> = {}): AcquireOptions => ({
      bucket,
      limit: 3,
      priority: 'interactive',
      ...overrides,
    });
    return { join, asked, bucket, leases, waiting };
  }

  /** How many calls Redis keeps a turn for. */
  async function callsInTurn(key: string): Promise<number> {
    const values = await admin.hvals(key);
    return values
      .flatMap((value) => value.split(' ').slice(2))
      .reduce((sum, calls) => sum + Number(calls), 0);
  }

  async function take(limiter: RedisLimiter, options: AcquireOptions, count: number): Promise<Ticket[]> {
    const tickets = await Promise.all(Array.from({ length: count }, () => limiter.acquire(options)));
    for (const ticket of tickets) ticket.send();
    return tickets;
  }

  const connectors: readonly [string, () => Promise<{ redis: RedisClient; close(): unknown }>][] = [
    [
      'a client of redis',
      async () => {
        const redis = await createClient({ url }).connect();
        return { redis, close: () => redis.close() };
      },
    ],
    [
      'a client of redis that gives buffers',
      async () => {
        const redis = await createClient({ url }).connect();
        return { redis: redis.withTypeMapping({ 36: Buffer, 58: String }), close: () => redis.close() };
      },
    ],
    [
      'a pool of redis',
      async () => {
        const redis = createClientPool({ url }, { maximum: 4 });
        await redis.connect();
        return { redis, close: () => redis.close() };
      },
    ],
    [
      'a client of ioredis',
      async () => {
        const redis = new Redis(url);
        return { redis, close: () => redis.quit() };
      },
    ],
  ];

  test.each(connectors)('%s → shares tokens with the others', async (_title, connect) => {
    const { redis, close } = await connect();
    onTestFinished(async () => void (await close()));
    const { join, asked, leases } = makeFleet();
    const [mine, theirs] = [join(), new RedisLimiter({ redis, keyPrefix, logger: silent })];
    await take(theirs, asked(), 2);
    const [ticket] = await take(mine, asked(), 1);
    expect(ticket?.tokensLeft).toBe(0);
    expect(await admin.zcard(leases)).toBe(3);
  });

  test('a limit that is used up by one process → the other waits for the first token to come back', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const tickets = await take(one, asked(), 3);
    for (const ticket of tickets) ticket.settle({ status: 200 });
    const settledAt = performance.now();
    await other.acquire(asked());
    expect(performance.now() - settledAt).toBeGreaterThanOrEqual(1_000);
  });

  test('a process that dies after sending → its tokens come back by themselves', async () => {
    const { join, asked, leases, waiting } = makeFleet();
    await take(join(), asked(), 3);
    const sentAt = performance.now();
    await take(join(), asked(), 3);
    const waitedMs = performance.now() - sentAt;
    expect(waitedMs).toBeGreaterThanOrEqual(1_500);
    expect(waitedMs).toBeLessThan(2_000);
    expect(await admin.pttl(leases)).toBeGreaterThan(0);
    expect(await admin.pttl(waiting)).not.toBe(-1);
  });

  test('a waiting call aborts → no lease and no turn is left in Redis', async () => {
    const { join, asked, leases, waiting } = makeFleet();
    const [one, other] = [join(), join()];
    await take(one, asked(), 3);
    const abort = new AbortController();
    const call = other.acquire(asked({ signal: abort.signal }));
    await sleep(50);
    expect(await callsInTurn(waiting)).toBe(1);
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await sleep(50);
    expect(await admin.zcard(leases)).toBe(3);
    expect(await callsInTurn(waiting)).toBe(0);
  });

  test('a call aborts whose token is about to come back → the token goes to another process in time', async () => {
    const { join, asked } = makeFleet();
    const [one, other, third] = [join(), join(), join()];
    for (const ticket of await take(one, asked({ limit: 1 }), 1)) ticket.settle({ status: 200 });
    const settledAt = performance.now();
    const abort = new AbortController();
    const call = other.acquire(asked({ limit: 1, signal: abort.signal }));
    call.catch(() => {});
    await sleep(980);
    abort.abort();
    await third.acquire(asked({ limit: 1 }));
    expect(performance.now() - settledAt).toBeLessThan(1_500);
  });

  test('cancelled before sending → another process has the token at once', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const ticket = await one.acquire(asked({ limit: 1 }));
    ticket.cancel();
    await sleep(50);
    const startedAt = performance.now();
    await other.acquire(asked({ limit: 1 }));
    expect(performance.now() - startedAt).toBeLessThan(500);
  });

  test('granted and sent only after 2.5 s → nobody else got the token meanwhile', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const ticket = await one.acquire(asked({ limit: 1 }));
    let isGranted = false;
    const call = other.acquire(asked({ limit: 1 })).then(() => {
      isGranted = true;
    });
    await sleep(2_500);
    expect(isGranted).toBe(false);
    ticket.send();
    ticket.settle({ status: 200 });
    await call;
  });

  test('a 429 in one process → the other waits as long as the service asked for', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const [ticket] = await take(one, asked(), 1);
    ticket?.settle({ status: 429, retryAfterMs: 1_500 });
    const pausedAt = performance.now();
    await sleep(50);
    await other.acquire(asked());
    expect(performance.now() - pausedAt).toBeGreaterThanOrEqual(1_480);
  });

  test('a limit announced to one process → holds for the other, up to its maxLimit', async () => {
    const { join, asked, bucket } = makeFleet();
    const [one, other, careful] = [join(), join(), join()];
    const [ticket] = await take(one, asked(), 1);
    ticket?.settle({ status: 200, announcedLimit: 8 });
    await sleep(50);
    await other.acquire(asked());
    await careful.acquire(asked({ maxLimit: 5 }));
    expect(other.snapshot(bucket)?.limit).toBe(8);
    expect(careful.snapshot(bucket)?.limit).toBe(5);
  });

  test('two announcements that overtake each other → the one of the later request holds', async () => {
    const { join, asked, bucket } = makeFleet();
    const [one, other] = [join(), join()];
    const [early] = await take(one, asked(), 1);
    await sleep(20);
    const [late] = await take(other, asked(), 1);
    late?.settle({ status: 200, announcedLimit: 5 });
    await sleep(50);
    early?.settle({ status: 200, announcedLimit: 9 });
    await sleep(50);
    const third = join();
    await third.acquire(asked());
    expect(third.snapshot(bucket)?.limit).toBe(5);
  });

  test('an interactive call in one process and background calls in another → the interactive one goes first', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const tickets = await take(one, asked({ limit: 1 }), 1);
    const order: string[] = [];
    const background = one
      .acquire(asked({ limit: 1, priority: 'background' }))
      .then(() => order.push('background'));
    await sleep(50);
    for (const ticket of tickets) ticket.settle({ status: 200 });
    const interactive = other.acquire(asked({ limit: 1 })).then((ticket) => {
      order.push('interactive');
      ticket.cancel();
    });
    await Promise.all([background, interactive]);
    expect(order).toEqual(['interactive', 'background']);
  });

  test('background calls in one process → leave the reserve free for an interactive call in another', async () => {
    const { join, asked } = makeFleet();
    const [one, other] = [join(), join()];
    const calls = Array.from({ length: 12 }, () => one.acquire(asked({ limit: 10, priority: 'background' })));
    await Promise.all(calls.slice(0, 9));
    const startedAt = performance.now();
    await other.acquire(asked({ limit: 10 }));
    expect(performance.now() - startedAt).toBeLessThan(500);
    await Promise.all(calls.map(async (call) => (await call).cancel()));
  });

  test('a process with 60 waiting calls and one with 10 → they take turns', async () => {
    const { join, asked } = makeFleet();
    const order: string[] = [];
    const abort = new AbortController();
    const use = (name: string, limiter: RedisLimiter) =>
      limiter.acquire(asked({ limit: 4, signal: abort.signal })).then((ticket) => {
        order.push(name);
        ticket.send();
        ticket.settle({ status: 200 });
        if (order.length === 20) abort.abort();
      });
    const many = join();
    const few = join();
    const calls = Array.from({ length: 60 }, () => use('many', many));
    await sleep(100);
    calls.push(...Array.from({ length: 10 }, () => use('few', few)));
    await Promise.allSettled(calls);
    // The first burst went to the process that was there alone. It owes for that, and then each round is shared.
    const rounds = [2, 3, 4].map((round) => order.slice(4 * round, 4 * round + 4));
    for (const round of rounds) expect(new Set(round)).toEqual(new Set(['many', 'few']));
  });

  test('scripts that Redis forgot → loaded again', async () => {
    const { join, asked } = makeFleet();
    const limiter = join();
    await limiter.acquire(asked());
    await admin.script('FLUSH');
    await expect(limiter.acquire(asked())).resolves.toBeDefined();
  });

  describe('Redis goes away', () => {
    test.each(['refused', 'silent'] as const)(
      'it is %s and calls shall be rejected → ConnectionError within 1 s',
      async (kind) => {
        const proxy = await OutageProxy.open(url);
        onTestFinished(() => proxy.close());
        const redis = new Redis(proxy.url);
        redis.on('error', () => {});
        onTestFinished(() => redis.disconnect());
        const { join, asked } = makeFleet({ redis, onUnavailable: 'reject' });
        const limiter = join();
        await limiter.acquire(asked());
        await proxy.takeAway(kind);
        const startedAt = performance.now();
        await expect(limiter.acquire(asked())).rejects.toThrow(ConnectionError);
        expect(performance.now() - startedAt).toBeLessThan(1_000);
      },
    );

    test('a client of redis that has lost its server → its calls go on too', async () => {
      const proxy = await OutageProxy.open(url);
      onTestFinished(() => proxy.close());
      const redis = createClient({ url: proxy.url });
      redis.on('error', () => {});
      await redis.connect();
      onTestFinished(() => redis.destroy());
      const { join, asked } = makeFleet({ redis });
      const limiter = join();
      await limiter.acquire(asked());
      await proxy.takeAway('refused');
      await expect(limiter.acquire(asked())).resolves.toBeDefined();
    });
  });

  test('a program that has nothing more to do → ends by itself', async () => {
    const program = fileURLToPath(new URL('./redis-limiter/program.ts', import.meta.url));
    const input = ['--import', 'tsx', program, url, keyPrefix];
    const { stdout } = await promisify(execFile)(process.execPath, input, { timeout: 25_000 });
    expect(stdout.trim()).toBe('end of program');
  });
});

const isInstalled = hasRedisServer();
if (!isInstalled && process.env['CI'] === 'true') throw new Error('Expected `redis-server` to be installed');
if (!isInstalled) console.warn('Skipped the cluster of Redis: `redis-server` is not installed.');

describe.skipIf(!isInstalled)('RedisLimiter on a cluster of Redis', () => {
  const bucket = { baseUrl: 'https://api.example.test/v1', account: 'account-1', endpoint: 'trackers.get' };
  let cluster: OwnRedis;
  let node: { host: string; port: number };

  beforeAll(async () => {
    cluster = await startOwnRedis('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1');
    node = { host: '127.0.0.1', port: cluster.port };
    const admin = new Redis(node);
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await vi.waitFor(async () => {
      expect(String(await admin.call('CLUSTER', 'INFO'))).toContain('cluster_state:ok');
    }, 10_000);
    admin.disconnect();
  });
  afterAll(() => cluster.stop());

  test('the keys of a bucket → all in one slot', async () => {
    const admin = new Redis(node);
    onTestFinished(() => admin.disconnect());
    const keys = keysOf('tracking-client:limiter:', bucket);
    const slots = await Promise.all(keys.map((key) => admin.call('CLUSTER', 'KEYSLOT', key)));
    expect(new Set(slots).size).toBe(1);
  });

  test('a cluster of ioredis and one of redis → share tokens', async () => {
    const one = new Cluster([node]);
    onTestFinished(() => one.disconnect());
    await once(one, 'ready');
    const other = createCluster({ rootNodes: [{ socket: node }] });
    await other.connect();
    onTestFinished(() => other.destroy());
    const asked = { bucket, limit: 3, priority: 'interactive' } as const;
    await new RedisLimiter({ redis: one, logger: silent }).acquire(asked);
    const ticket = await new RedisLimiter({ redis: other, logger: silent }).acquire(asked);
    expect(ticket.tokensLeft).toBe(1);
  });
});

import { describe, expect, test } from 'vitest';
import type { AcquireOptions } from '../../../src/limiter/limiter.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../../src/redis/index.ts';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { bucketOf, type Call, countGranted, observe, toAcquire } from '../../limiter/make-limiter.ts';
import { RedisEmulator } from '../../support/redis-emulator.ts';
import { settled } from '../../support/settled.ts';
import { clock, useVirtualTime } from '../../support/virtual-time.ts';
import { QUIET_MS } from './make-redis-limiter.ts';

/** Processes on one emulated Redis, in virtual time. */
function makeProcesses(options: Partial<RedisLimiterOptions> = {}) {
  useVirtualTime();
  const emulator = new RedisEmulator();

  /** A process with a connection of its own, on which a test can lose commands and replies. */
  function join() {
    const connection = { isDown: false, isLossy: false, replies: [] as number[][] };
    const waiting: (() => void)[] = [];
    const redis: NodeRedisClient = {
      evalSha: () => emulator.evalSha(),
      eval: async (source, { keys, arguments: input }) => {
        if (connection.isDown) throw new Error('connect ECONNREFUSED');
        const run = () => emulator.run(source, keys, input);
        if (connection.isLossy) {
          run();
          await new Promise<void>((resolve) => waiting.push(resolve));
        }
        const reply = run();
        connection.replies.push(reply);
        return reply;
      },
    };
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const limiter = new RedisLimiter({ redis, logger, ...options });
    const acquire = (overrides: Partial<AcquireOptions> = {}) =>
      observe(limiter.acquire({ ...toAcquire(10), ...overrides }));
    /** The client connects again, and sends the commands again whose replies were lost. */
    const reconnect = async () => {
      connection.isLossy = false;
      for (const resume of waiting.splice(0)) resume();
      await settled();
    };
    return { connection, acquire, reconnect };
  }

  return { clock, emulator, join };
}

describe('a command that runs twice', () => {
  test('at once → the tokens of the first run, and no others', async () => {
    const { join } = makeProcesses();
    const a = join();
    a.connection.isLossy = true;
    const calls = [a.acquire(), a.acquire(), a.acquire()];
    await settled();
    await a.reconnect();
    expect(countGranted(calls)).toBe(3);
    expect(calls.map(({ permit }) => permit?.tokensLeft)).toEqual([7, 7, 7]);
  });

  test('after a process before it has left the queue → a token that comes back later still counts', async () => {
    const { clock, join } = makeProcesses({ limits: { 'trackers.get': 2 } });
    const [first, before, twice, other] = [join(), join(), join(), join()];
    const used = [first.acquire(), first.acquire()];
    await settled();
    for (const { permit } of used) permit?.send();
    used[0]?.permit?.report({ status: 200 });
    await clock.advance(100);
    used[1]?.permit?.report({ status: 200 });
    // The tokens come back after 1,010 and 1,110 ms. A process that waits takes the first one, so the next process takes the other.
    await clock.advance(700);
    const abort = new AbortController();
    before.acquire({ signal: abort.signal });
    await clock.advance(120);
    twice.connection.isLossy = true;
    const call = twice.acquire({ priority: 'background' });
    await settled();
    abort.abort();
    await settled();
    await twice.reconnect();
    const late = [other.acquire(), other.acquire()];
    await clock.advance(1_110 - 920 - 1);
    expect(countGranted([call, ...late])).toBeLessThanOrEqual(1);
  });

  test('long after the first run → a token from now on, and the call is granted', async () => {
    const { clock, join } = makeProcesses();
    const a = join();
    a.connection.isLossy = true;
    const call = a.acquire();
    await clock.advance(450);
    await a.reconnect();
    expect(call.state).toBe('granted');
  });
});

test('the clock of Redis is set back while a process waits, which then dies → the next process gets the next token', async () => {
  const { clock, emulator, join } = makeProcesses({ onUnavailable: 'reject' });
  const [a, b] = [join(), join()];
  const one = { bucket: bucketOf(1) };
  const used = a.acquire(one);
  await settled();
  used.permit?.send();
  a.acquire(one);
  await settled();
  a.connection.isDown = true;
  emulator.clockAheadMs -= 300_000;
  // A background call waits behind the interactive call of the other process.
  const call = b.acquire({ ...one, priority: 'background' });
  await clock.advance(3_000);
  expect(call.state).toBe('granted');
});

describe('processes that wait', () => {
  /** Sends each call and reports its response as soon as the call is granted, for so long. Returns the calls in this order. */
  async function serve(calls: readonly Call[], ms: number): Promise<Call[]> {
    const served = new Set<Call>();
    for (let time = 0; time < ms; time += 20) {
      for (const call of calls) {
        if (call.permit === undefined || served.has(call)) continue;
        served.add(call);
        call.permit.send();
        call.permit.report({ status: 200 });
      }
      await clock.advance(20);
    }
    return [...served];
  }

  test('four with background calls, then four with interactive calls → the interactive calls go first', async () => {
    const { join } = makeProcesses();
    const wait = (priority: 'background' | 'interactive') =>
      join().acquire({ bucket: bucketOf(1), priority });
    const first = join().acquire({ bucket: bucketOf(1) });
    await serve([first], 100);
    const background = Array.from({ length: 4 }, () => wait('background'));
    await settled();
    const interactive = Array.from({ length: 4 }, () => wait('interactive'));
    const served = await serve([...background, ...interactive], 9_000);
    expect(served.slice(0, 4).every((call) => interactive.includes(call))).toBe(true);
    expect(served).toHaveLength(8);
  });

  test('a process that has got twelve tokens, and a new process → both get the same number from then on', async () => {
    const { join } = makeProcesses();
    const wait = () => {
      const { acquire } = join();
      return Array.from({ length: 30 }, () => acquire({ bucket: bucketOf(3) }));
    };
    const old = wait();
    await serve(old, 4_000);
    const before = countGranted(old);
    const joined = wait();
    await serve([...old, ...joined], 6_000);
    expect(Math.abs(countGranted(old) - before - countGranted(joined))).toBeLessThanOrEqual(3);
  });
});

describe('after an outage of another process', () => {
  /** Lets one of two processes lose Redis and come back. */
  async function recover() {
    const { clock, join } = makeProcesses({ processes: 2 });
    const [a, b] = [join(), join()];
    a.connection.isDown = true;
    const abort = new AbortController();
    for (let call = 0; call < 10; call += 1) a.acquire({ signal: abort.signal });
    await clock.advance(QUIET_MS + 10);
    a.connection.isDown = false;
    await clock.advance(300);
    abort.abort();
    await clock.advance(1_000);
    return b;
  }

  test('more calls than its share → a process takes its share at once, and the rest later', async () => {
    const b = await recover();
    const calls = Array.from({ length: 10 }, () => b.acquire());
    await settled();
    expect(countGranted(calls)).toBe(5);
  });

  test('fewer calls than its share → one token for each call', async () => {
    const b = await recover();
    b.acquire();
    await settled();
    expect(b.connection.replies.map(([, , , , ...starts]) => starts)).toEqual([[0]]);
  });
});

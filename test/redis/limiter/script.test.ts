import { describe, expect, test } from 'vitest';
import type { AcquireOptions } from '../../../src/limiter/limiter.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../../src/redis/index.ts';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { type Call, countGranted, observe, toAcquire } from '../../limiter/make-limiter.ts';
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
    const connection = { isDown: false, isLossy: false };
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
        return run();
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
  test('at once → as many tokens as a command that runs once', async () => {
    const { join } = makeProcesses();
    const a = join();
    a.connection.isLossy = true;
    const calls = [a.acquire(), a.acquire(), a.acquire()];
    await settled();
    await a.reconnect();
    expect(countGranted(calls)).toBe(3);
    expect(calls.map(({ permit }) => permit?.tokensLeft)).toEqual([7, 7, 7]);
  });

  test('for the last free token → that token, and not one more', async () => {
    const { join } = makeProcesses({ limits: { 'trackers.get': 2 } });
    const [a, b] = [join(), join()];
    const first = a.acquire();
    await settled();
    a.connection.isLossy = true;
    const call = a.acquire();
    await settled();
    await a.reconnect();
    const other = b.acquire();
    await settled();
    expect(countGranted([first, call, other])).toBe(2);
    expect(other.state).toBe('waiting');
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

describe('a clock of Redis that is set back', () => {
  test.each([
    ['a second', 1_000],
    ['five minutes', 300_000],
  ])('%s while tokens are out → they come back, and none too early', async (_title, backMs) => {
    const { clock, emulator, join } = makeProcesses({ limits: { 'trackers.get': 1 } });
    const [a, b] = [join(), join()];
    const used = a.acquire();
    await settled();
    used.permit?.send();
    used.permit?.noteResponse({ status: 200 });
    await clock.advance(400);
    emulator.clockAheadMs -= backMs;
    const call = b.acquire();
    await clock.advance(1_010 - 400 - 1);
    expect(call.state).toBe('waiting');
    await clock.advance(2_600);
    expect(call.state).toBe('granted');
  });
});

describe('processes that wait', () => {
  const callsOf = ({ acquire }: ReturnType<ReturnType<typeof makeProcesses>['join']>, count: number) =>
    Array.from({ length: count }, () => acquire());

  test('two processes with ten calls each at the same time → half of the free tokens, then half of the rest', async () => {
    const { join } = makeProcesses();
    const calls = [callsOf(join(), 10), callsOf(join(), 10)];
    await settled();
    expect(calls.map(countGranted)).toEqual([5, 3]);
  });

  test('one process alone with ten calls → all ten tokens within 100 ms', async () => {
    const { clock, join } = makeProcesses();
    const calls = callsOf(join(), 10);
    await clock.advance(100);
    expect(countGranted(calls)).toBe(10);
  });

  test('a process whose calls wait, and a new process → the new process gets some of the tokens that come back', async () => {
    const { join } = makeProcesses();
    const old = callsOf(join(), 60);
    await serve(old, 1_500);
    const joined = callsOf(join(), 20);
    await serve([...old, ...joined], 3_000);
    // Which process asks first is random, but one command never takes more than half of the free tokens.
    expect(countGranted(joined)).toBeGreaterThanOrEqual(3);
  });

  test('a process that dies while its calls wait → the other process gets all later tokens', async () => {
    const { join } = makeProcesses({ limits: { 'trackers.get': 1 } });
    const [dead, living] = [join(), join()];
    await serve([dead.acquire()], 20);
    dead.acquire();
    await settled();
    dead.connection.isDown = true;
    const calls = callsOf(living, 3);
    await serve(calls, 6_000);
    expect(countGranted(calls)).toBe(3);
  });

  test('forty background calls in each of four processes, then an interactive call → granted at once', async () => {
    const { join } = makeProcesses();
    const processes = [join(), join(), join(), join()];
    const background = processes.flatMap(({ acquire }) =>
      Array.from({ length: 40 }, () => acquire({ priority: 'background' })),
    );
    await serve(background, 3_000);
    const call = processes[3]?.acquire();
    await settled();
    expect(call?.state).toBe('granted');
  });
});

/** Sends each call and reports its response as soon as the call is granted, for so long. */
async function serve(calls: readonly Call[], ms: number): Promise<void> {
  const served = new Set<Call>();
  for (let time = 0; time < ms; time += 20) {
    for (const call of calls) {
      if (call.permit === undefined || served.has(call)) continue;
      served.add(call);
      call.permit.send();
      call.permit.noteResponse({ status: 200 });
    }
    await clock.advance(20);
  }
}

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

  test('more calls than its share → a process takes its share within 100 ms, and the rest when the outage is forgotten', async () => {
    const b = await recover();
    const calls = Array.from({ length: 10 }, () => b.acquire());
    await clock.advance(100);
    expect(countGranted(calls)).toBe(5);
    await clock.advance(4_000);
    expect(countGranted(calls)).toBe(10);
  });

  test('fewer calls than its share → one token for each call', async () => {
    const b = await recover();
    const calls = [b.acquire(), b.acquire()];
    await settled();
    expect(countGranted(calls)).toBe(2);
  });
});

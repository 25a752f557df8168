import { describe, expect, test } from 'vitest';
import { QueueFullError, TimeoutError } from '../../../src/errors.ts';
import { bucket } from '../../limiter/make-limiter.ts';
import { makeRedisLimiter } from './make-redis-limiter.ts';
import { settled } from './manual-clock.ts';

const busy = () => ({ askInMs: 900 });

describe('giving up', () => {
  test('a signal that has aborted → rejects with its reason, Redis is not asked', async () => {
    const { acquire, redis } = makeRedisLimiter();
    const call = acquire({ signal: AbortSignal.abort('enough') });
    await settled();
    expect(call.error).toBe('enough');
    expect(redis.asked).toHaveLength(0);
  });

  test('the last waiting call aborts → Redis is told that nobody waits', async () => {
    const { acquire, redis } = makeRedisLimiter();
    redis.reply = busy;
    const abort = new AbortController();
    const call = acquire({ signal: abort.signal });
    await settled();
    abort.abort('enough');
    await settled();
    expect(call.error).toBe('enough');
    expect(redis.asked.at(-1)).toMatchObject({ interactive: 0, background: 0 });
  });

  test('1000 calls on one signal → one listener, all rejected with its reason', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = busy;
    const { signal, listeners, abort } = countingSignal();
    const calls = Array.from({ length: 1_000 }, () => acquire({ signal }));
    await settled();
    expect(listeners()).toBe(1);
    expect(clock.timerCount).toBe(1);
    abort();
    await settled();
    expect(calls.every(({ error }) => error === 'enough')).toBe(true);
    expect(listeners()).toBe(0);
  });

  test('maxWaitMs over → TimeoutError of phase queue', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = busy;
    const call = acquire({ maxWaitMs: 300 });
    await clock.advance(299);
    expect(call.state).toBe('waiting');
    await clock.advance(1);
    expect(call.error).toBeInstanceOf(TimeoutError);
    expect(call.error).toMatchObject({ phase: 'queue', timeoutMs: 300 });
  });

  test('maxWaitMs over for the last waiting call → Redis is told that nobody waits', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = busy;
    acquire({ maxWaitMs: 300 });
    await clock.advance(300);
    expect(redis.asked.map(({ interactive }) => interactive)).toEqual([1, 0]);
  });

  test('maxWaitMs over in a blocked program, after which a token came → TimeoutError, the token goes back', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ starts: [120] });
    const call = acquire({ maxWaitMs: 100 });
    await settled();
    clock.block(150);
    await clock.advance(1);
    expect(call.error).toBeInstanceOf(TimeoutError);
    expect(redis.asked[1]?.leases).toEqual([{ number: 0, backInMs: 0, isExact: true }]);
  });

  test('maxWaitMs over while Redis is silent → TimeoutError in time', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => new Promise(() => {});
    const call = acquire({ maxWaitMs: 100 });
    await clock.advance(100);
    expect(call.error).toBeInstanceOf(TimeoutError);
  });
});

describe('maxQueue', () => {
  test('more calls than may wait → the latest reject once Redis said that they must wait', async () => {
    const { acquire, redis } = makeRedisLimiter({ maxQueue: 2 });
    redis.reply = () => ({ starts: [0], askInMs: 900 });
    const calls = [acquire(), acquire(), acquire(), acquire(), acquire()];
    await settled();
    const states = calls.map(({ state }) => state);
    expect(states).toEqual(['granted', 'waiting', 'waiting', 'rejected', 'rejected']);
    expect(calls[4]?.error).toBeInstanceOf(QueueFullError);
  });

  test('as many wait as may → the next call rejects without a command', async () => {
    const { acquire, redis } = makeRedisLimiter({ maxQueue: 1 });
    redis.reply = busy;
    acquire();
    await settled();
    const call = acquire();
    await settled();
    expect(call.error).toBeInstanceOf(QueueFullError);
    expect(redis.asked).toHaveLength(1);
  });

  test('maxQueue 0 and a free token → granted', async () => {
    const { acquire } = makeRedisLimiter({ maxQueue: 0 });
    const call = acquire();
    await settled();
    expect(call.state).toBe('granted');
  });
});

describe('timers', () => {
  test('nothing to do → no timer', async () => {
    const { sent, clock } = makeRedisLimiter();
    const permit = await sent();
    expect(clock.timerCount).toBe(0);
    permit.report({ status: 200 });
    await clock.advance(300);
    expect(clock.timerCount).toBe(0);
  });

  test('only news left to tell → the timer does not keep a program alive, unless a call waits', async () => {
    const { sent, acquire, redis, clock } = makeRedisLimiter();
    const permit = await sent();
    permit.report({ status: 200 });
    await settled();
    expect(clock.livelyTimerCount).toBe(0);
    redis.reply = busy;
    acquire();
    await settled();
    expect(clock.livelyTimerCount).toBe(1);
  });

  test('calls of several endpoints wait → one timer each', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = busy;
    for (const endpoint of ['trackers.get', 'trackers.create']) {
      for (let call = 0; call < 10; call += 1) acquire({ bucket: { ...bucket, endpoint } });
    }
    await settled();
    expect(clock.timerCount).toBe(2);
  });
});

describe('order', () => {
  test('tokens one by one → interactive calls first, each priority in its order', async () => {
    const { acquire, redis, clock } = makeRedisLimiter();
    redis.reply = () => ({ starts: [0], askInMs: 100 });
    const order: string[] = [];
    const calls = ['background 1', 'background 2', 'interactive 1', 'interactive 2'].map((name) => {
      const priority = name.startsWith('interactive') ? 'interactive' : 'background';
      return { name, call: acquire({ priority }) };
    });
    for (let round = 0; round < 6; round += 1) {
      await settled();
      const granted = calls.filter(({ name, call }) => call.state === 'granted' && !order.includes(name));
      order.push(...granted.map(({ name }) => name));
      await clock.advance(100);
    }
    expect(order).toEqual(['interactive 1', 'interactive 2', 'background 1', 'background 2']);
  });
});

/** A signal that counts who listens. */
function countingSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...input: Parameters<typeof add>) => {
    count += 1;
    add(...input);
  };
  signal.removeEventListener = (...input: Parameters<typeof remove>) => {
    count -= 1;
    remove(...input);
  };
  signal.addEventListener('abort', () => {
    count = 0;
  });
  count = 0;
  return { signal, listeners: () => count, abort: () => controller.abort('enough') };
}

import { describe, expect, test } from 'vitest';
import { bucket } from '../../limiter/make-limiter.ts';
import { makeRedisLimiter, QUIET_MS } from './make-redis-limiter.ts';
import { settled } from './manual-clock.ts';
import { grantAll } from './scripted-redis.ts';

const refused = () => new Error('connect ECONNREFUSED 127.0.0.1:6379');

test('an outage → said once, and once that it is over', async () => {
  const { acquire, redis, clock, fallbacks, lines } = makeRedisLimiter();
  redis.reply = refused;
  acquire();
  acquire({ bucket: { ...bucket, endpoint: 'couriers.list' } });
  acquire();
  await clock.advance(1_200);
  expect(fallbacks).toEqual(['unavailable']);
  redis.reply = grantAll;
  await clock.advance(500);
  expect(fallbacks).toEqual(['unavailable', 'recovered']);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain('ECONNREFUSED');
});

test.each([
  ['local', 'this process keeps to its own share'],
  ['reject', 'calls are rejected'],
] as const)(
  'an outage, onUnavailable %s → the log says what happens meanwhile',
  async (onUnavailable, effect) => {
    const { acquire, redis, lines } = makeRedisLimiter({ onUnavailable });
    redis.reply = refused;
    acquire();
    await settled();
    expect(lines[0]).toContain(effect);
  },
);

describe('onFallback', () => {
  test('no hook → the outage is all that is logged', async () => {
    const { acquire, redis, lines } = makeRedisLimiter({ onFallback: undefined });
    redis.reply = refused;
    acquire();
    await settled();
    expect(lines).toHaveLength(1);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('broken hook');
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken hook'))],
  ])('a hook that %s → logged, the limiter goes on', async (_title, onFallback) => {
    const { acquire, redis, clock, lines } = makeRedisLimiter({ onFallback });
    redis.reply = refused;
    const call = acquire();
    await clock.advance(QUIET_MS + 30);
    expect(call.state).toBe('granted');
    expect(lines.some((line) => line.includes('onFallback'))).toBe(true);
  });
});

import type { Permit } from '../../../src/limiter/limiter.ts';
import { type FallbackInfo, RedisLimiter, type RedisLimiterOptions } from '../../../src/redis/index.ts';
import type { AcquireOptions } from '../../../src/redis/old-allowance.ts';
import { bucket, type Call } from '../../limiter/make-limiter.ts';
import { ManualClock, settled } from './manual-clock.ts';
import { ScriptedRedis } from './scripted-redis.ts';

/** From the failed question until every token that Redis gave out is surely back. */
export const QUIET_MS = 200 + 500 + 1_010;

/** A limiter on a manual clock and a scripted Redis, and short ways to use it. */
export function makeRedisLimiter(options: Partial<RedisLimiterOptions> = {}) {
  const clock = new ManualClock();
  const redis = new ScriptedRedis();
  const fallbacks: FallbackInfo['state'][] = [];
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const limiter = new RedisLimiter({
    redis,
    clock,
    logger: { debug: log, info: log, warn: log, error: log },
    onFallback: ({ state }) => fallbacks.push(state),
    ...options,
  });

  function acquire(overrides: Partial<AcquireOptions> = {}): Call {
    const call: Call = { state: 'waiting', doneAt: undefined, permit: undefined, error: undefined };
    limiter.acquire({ bucket, limit: 10, priority: 'interactive', ...overrides }).then(
      (permit) => Object.assign(call, { state: 'granted', doneAt: clock.now(), permit }),
      (error: unknown) => Object.assign(call, { state: 'rejected', doneAt: clock.now(), error }),
    );
    return call;
  }

  /** A call that is granted and sent at once. */
  async function sent(overrides: Partial<AcquireOptions> = {}): Promise<Permit> {
    const call = acquire(overrides);
    await settled();
    if (!call.permit) throw new Error('Expected a token, got none');
    call.permit.send();
    await settled();
    return call.permit;
  }

  return { clock, redis, limiter, acquire, sent, fallbacks, lines };
}

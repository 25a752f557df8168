import type { AcquireOptions, Permit } from '../../../src/limiter/limiter.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../../src/redis/index.ts';
import { bucket, type Call, useVirtualTime } from '../../limiter/make-limiter.ts';
import { settled } from '../../support/settled.ts';
import { ScriptedRedis } from './scripted-redis.ts';

/** From a failed command until every token that Redis gave out is surely back. */
export const QUIET_MS = 200 + 100 + 500 + 1_010;

/** A limiter in virtual time on a scripted Redis, and short ways to use it. The limit is 10 unless a call says otherwise. */
export function makeRedisLimiter(options: Partial<RedisLimiterOptions> = {}) {
  const clock = useVirtualTime();
  const redis = new ScriptedRedis();
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const logger = { debug: log, info: log, warn: log, error: log };
  const limiter = new RedisLimiter({ redis, logger, ...options });

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

  return { clock, redis, limiter, acquire, sent, lines };
}

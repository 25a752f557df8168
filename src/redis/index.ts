/**
 * Shares the allowance, and the memory of handled events, among processes through Redis.
 *
 * @module tracking-client/redis
 */

export { RedisDedupeStore, type RedisDedupeStoreOptions } from './dedupe-store.ts';
export {
  type FallbackInfo,
  RedisLimiter,
  type RedisLimiterOptions,
  type UnavailablePolicy,
} from './limiter.ts';
export type { Clock } from './old-allowance.ts';
export type { IoredisClient, NodeRedisClient, RedisClient } from './redis-client.ts';

/**
 * A limiter and a store of handled webhook events that processes share through Redis.
 * @module tracking-client/redis
 */

export { RedisDedupeStore, type RedisDedupeStoreOptions } from './dedupe-store.ts';
export { RedisLimiter, type RedisLimiterOptions } from './limiter.ts';
export type { RedisClient } from './redis-client.ts';

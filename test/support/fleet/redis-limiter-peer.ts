/** `peers.ts` forks this program: a client whose limit is shared through Redis. */
import { RedisLimiter } from '../../../src/redis/index.ts';
import { openClient, servePeer } from './serve-peer.ts';

servePeer((task, redis, onFallback) => {
  const { limit, namespace: keyPrefix, processes } = task;
  const logger = {
    debug() {},
    info: () => onFallback('recovered'),
    warn: () => onFallback('unavailable'),
    error() {},
  };
  const limits = { 'trackers.get': limit };
  return openClient(task, new RedisLimiter({ redis, keyPrefix, processes, limits, logger }));
});

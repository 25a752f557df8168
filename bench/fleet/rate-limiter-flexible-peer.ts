/** A process of a fleet that shares its limit with the library `rate-limiter-flexible`. */
import { RateLimiterQueue, RateLimiterRedis } from 'rate-limiter-flexible';
import { servePeer } from '../../test/support/fleet/serve-peer.ts';
import { send, withRetries } from '../limiter/contenders.ts';

servePeer((task, storeClient) => {
  const { limit: points, namespace: keyPrefix } = task;
  const limiter = new RateLimiterRedis({ storeClient, keyPrefix, points, duration: 1 });
  const queue = new RateLimiterQueue(limiter, { maxQueueSize: 10_000 });
  return withRetries(async () => {
    await queue.removeTokens(1);
    return await send(task);
  });
});

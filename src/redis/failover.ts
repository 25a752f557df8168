import { systemClock } from '../common/clock.ts';
import { readError } from '../common/foreign.ts';
import { hasMethods } from '../common/option-schemas.ts';
import { TrackingError } from '../errors.ts';

const RECONNECT_EVERY_MS = 10_000;

/**
 * The refusals that a server sends because it is a replica, or has just become one; before version 7, Redis puts the error of a
 * script inside a text. Other refusals, such as LOADING, CLUSTERDOWN and NOREPLICAS, say nothing about which server is the primary.
 */
const REFUSAL_OF_REPLICA = /(?:^|-)(?:READONLY|MASTERDOWN|UNBLOCKED) /;

export function isRefusalOfReplica(error: unknown): boolean {
  return REFUSAL_OF_REPLICA.test(readError(error)?.message ?? '');
}

export function explainReplica(error: unknown): TrackingError {
  return new TrackingError(
    `The Redis client is connected to a replica, which refuses writes (${readError(error)?.message}); connect it to the primary. ` +
      'To follow a failover, use a client of `ioredis` with a `retryStrategy`, Redis Sentinel, or a cluster',
    { cause: error },
  );
}

/**
 * Builds the function that reconnects a client of ioredis, because after a failover the old connection leads to a replica. It returns
 * false for other clients: those of redis cannot reconnect without ending the commands of the app.
 */
export function createReconnect(redis: object): () => boolean {
  let reconnectedAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (!isIoredis(redis)) return false;
    const now = systemClock.now();
    // If the address leads to a replica for longer, do not disturb the commands of the app at each call.
    if (redis.status === 'ready' && now - reconnectedAt >= RECONNECT_EVERY_MS) {
      reconnectedAt = now;
      redis.disconnect(true);
    }
    return true;
  };
}

interface Ioredis {
  readonly status: string;
  disconnect(reconnect: boolean): void;
}

/** True for a client of ioredis with one server, or with Sentinel, that may connect again. */
function isIoredis(redis: object): redis is Ioredis {
  const options: unknown = Reflect.get(redis, 'options');
  return hasMethods(redis, 'evalsha', 'disconnect') && hasMethods(options, 'retryStrategy');
}

import { TrackingClient } from 'tracking-client';
import { type RedisClient, RedisDedupeStore, RedisLimiter } from 'tracking-client/redis';
import { type DedupeStore, WebhookInbox } from 'tracking-client/webhooks';

export function share(redis: RedisClient, second: RedisClient): TrackingClient {
  const limiter = new RedisLimiter({ redis, processes: 4, onUnavailable: 'reject', logger: console });
  const store: DedupeStore = new RedisDedupeStore({ redis: second, keyPrefix: 'shop:' });
  void new WebhookInbox({ store });
  return new TrackingClient({ limiter });
}

export function misspelt(redis: RedisClient): void {
  // @ts-expect-error -- `prefix`
  void new RedisDedupeStore({ redis, prefix: 'shop:' });
  // @ts-expect-error -- no scripts
  void new RedisLimiter({ redis: { get: async () => 'value' } });
  // @ts-expect-error -- another word
  void new RedisLimiter({ redis, onUnavailable: 'wait' });
}

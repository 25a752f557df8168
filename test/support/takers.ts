import { TokenBucketLimiter, TrackingClient } from 'tracking-client';
import { telemetryHooks, webhookMetrics } from 'tracking-client/opentelemetry';
import { PostgresDedupeStore } from 'tracking-client/postgres';
import { RedisDedupeStore, RedisLimiter } from 'tracking-client/redis';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { trackingHandlers } from 'tracking-client/testing/msw';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from 'tracking-client/webhooks';
import { ScriptedRedis } from '../redis/limiter/make-redis-limiter.ts';

export const fake = createFakeTrackingService();
export const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
export const { trackers } = client;
export const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });

/** Reads the first item of a stream. */
export async function first(stream: AsyncIterable<unknown>): Promise<unknown> {
  for await (const item of stream) return item;
  return undefined;
}

/** What takes options, called with some of them. */
// biome-ignore lint/suspicious/noExplicitAny: the options are wrong on purpose
export const TAKERS: Record<string, (options: any) => unknown> = {
  TrackingClient: (options) => new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, ...options }),
  'couriers.list': (options) => client.couriers.list(options),
  'trackers.createBulk': (options) => trackers.createBulk([], options),
  'trackers.listAll': (options) => first(trackers.listAll(options)),
  'trackers.poll': (options) => first(trackers.poll('an-id', options)),
  'trackers.pollMany': (options) => first(trackers.pollMany(['an-id'], options)),
  'pollMany.add': (options) => trackers.pollMany([]).add({ id: 'an-id', ...options }),
  'trackers.pollOnce': (options) => trackers.pollOnce('an-id', options),
  'trackers.waitUntilStopped': (options) => trackers.waitUntilStopped('an-id', options),
  'trackers.createMany': (options) => first(trackers.createMany([], options)),
  TokenBucketLimiter: (options) => new TokenBucketLimiter(options),
  RedisLimiter: (options) => new RedisLimiter({ redis: new ScriptedRedis(), ...options }),
  RedisDedupeStore: (options) => new RedisDedupeStore({ redis: new ScriptedRedis(), ...options }),
  PostgresDedupeStore: (options) => new PostgresDedupeStore({ pool: { query() {} }, ...options }),
  MemoryDedupeStore: (options) => new MemoryDedupeStore(options),
  WebhookInbox: (options) => new WebhookInbox({ store: new MemoryDedupeStore(), ...options }),
  'inbox.process': (options) => inbox.process({ trackerId: 't', events: [] }, () => {}, options),
  createWebhookHandler: (options) => createWebhookHandler({ secret: 's', onEvent() {}, ...options }),
  createWebhookSender: (options) => createWebhookSender({ target: () => {}, fake, ...options }),
  createFakeTrackingService: (options) => createFakeTrackingService(options),
  'fake.play': (options) => fake.play('RR123456785CN', 'delivered', options),
  telemetryHooks: (options) => telemetryHooks(options),
  trackingHandlers: (options) => trackingHandlers(fake, options),
  webhookMetrics: (options) => webhookMetrics(options),
};

// An app that emits declarations exports these values without type annotations, so it must be able to import every type.
import { TokenBucketLimiter, TrackingClient } from 'tracking-client';
import { parseOccurrenceDatetime } from 'tracking-client/events';
import { createFakeTrackingService } from 'tracking-client/testing';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  parseWebhook,
  toNodeHandler,
  WebhookInbox,
} from 'tracking-client/webhooks';

export const limiter = new TokenBucketLimiter();
export const client = new TrackingClient({ limiter });
export const { trackers } = client;
export const getCouriers = () => client.couriers;
export const getTracker = (id: string) => client.trackers.get(id);
export const getRateLimit = async () => (await client.couriers.list().withResponse()).rateLimit;
export const getDelivery = async (id: string) => (await client.trackers.results(id)).shipment?.delivery;
export const getRecipient = async (id: string) => (await client.trackers.results(id)).shipment?.recipient;
export const getStatistics = async (id: string) => (await client.trackers.results(id)).statistics;
export const getWebhooks = async (id: string) => (await client.trackers.webhookHistory(id)).webhooks;
export const poll = (id: string) => client.trackers.poll(id);
export const pollOnce = (id: string) => client.trackers.pollOnce(id, { knownKeys: new Set<string>() });
export const resultsMany = (ids: AsyncIterable<string>) => client.trackers.resultsMany(ids);
export const pollMany = (ids: string[]) => client.trackers.pollMany(ids);
export const createMany = (numbers: string[]) =>
  client.trackers.createMany(numbers.map((trackingNumber) => ({ trackingNumber })));
export const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
export const processBody = (body: string) => inbox.process(body, { onEvent: () => {} });
export const webhooks = createWebhookHandler({ secret: 'secret', inbox, onEvent: () => {} });
export const listener = toNodeHandler(webhooks);
export const parse = (body: string) => parseWebhook(body);
export const parseDate = (text: string) => parseOccurrenceDatetime(text);
export const fake = createFakeTrackingService();

// @ts-expect-error -- no limiter
export const other = new TrackingClient({ limiter: {} });

import { isTrackingError, TrackingClient } from 'tracking-client';
import { PostgresDedupeStore } from 'tracking-client/postgres';
import { RedisLimiter } from 'tracking-client/redis';
import { createFakeTrackingService } from 'tracking-client/testing';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from 'tracking-client/webhooks';

/** Uses the package as a server does: a call, an error by its class, and a webhook. */
export async function run() {
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  const { trackingNumber } = await client.trackers.create({ trackingNumber: 'LA680658838NL' });
  const code = await client.trackers.get('nobody').catch((error) => isTrackingError(error) && error.name);
  const events = [];
  const webhooks = createWebhookHandler({
    secret: 'whsec',
    inbox: new WebhookInbox({ store: new MemoryDedupeStore() }),
    onEvent: ({ eventId }) => events.push(eventId),
  });
  const { status } = await webhooks(
    new Request('http://shop.test/webhooks', {
      method: 'POST',
      headers: { authorization: 'Bearer whsec', 'content-type': 'application/json' },
      body: '{"trackerId":"t1","events":[{"eventId":"e1"}]}',
    }),
  );
  return [trackingNumber, code, status, ...events, typeof RedisLimiter, typeof PostgresDedupeStore].join(' ');
}

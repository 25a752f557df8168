// One run of everything a runtime must carry: all endpoints over real HTTP, the limiter, the webhook handler, the errors.
// Plain JavaScript against the installed package, so that every runtime runs the same bytes.
import assert from 'node:assert/strict';
import { NotFoundError, TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { createWebhookHandler, MemoryDedupeStore, sortEvents, WebhookInbox } from 'tracking-client/webhooks';

const fake = createFakeTrackingService({ resultsDelayMs: 0, plans: { perShipment: true, perCall: true } });
const server = await fake.listen();
const client = new TrackingClient({ baseUrl: server.url, apiKey: fake.apiKey });
const checked = [];

const tracker = await client.trackers.create({ trackingNumber: 'LA680658838NL', clientTrackerId: 'order-1' });
checked.push('trackers.create');
assert.equal((await client.trackers.list()).trackers.length, 1);
checked.push('trackers.list');
const bulk = await client.trackers.createBulk([{ trackingNumber: 'RR123456785CN' }]);
assert.equal(bulk.status, 'success');
checked.push('trackers.createBulk');
fake.play('LA680658838NL', 'delivered', { speed: Number.POSITIVE_INFINITY });
const tracked = await client.trackers.track({ trackingNumber: 'LA680658838NL', clientTrackerId: 'order-1' });
assert.equal(tracked.tracker.trackerId, tracker.trackerId);
checked.push('trackers.track');
assert.equal(
  (await client.trackers.get('order-1', { searchBy: 'clientTrackerId' })).trackerId,
  tracker.trackerId,
);
checked.push('trackers.get');
assert.equal(
  (await client.trackers.update(bulk.data[0].tracker.trackerId, { isSubscribed: false })).isSubscribed,
  false,
);
checked.push('trackers.update');
assert.equal((await client.trackers.resultsByTrackingNumber('LA680658838NL')).length, 1);
checked.push('trackers.resultsByTrackingNumber');
const results = await client.trackers.results(tracker.trackerId);
assert.equal(sortEvents(results.events).at(-1).statusMilestone, 'delivered');
checked.push('trackers.results');
assert.ok((await client.trackers.webhookHistory(tracker.trackerId)).webhooks);
checked.push('trackers.webhookHistory');
assert.ok((await client.tracking.search({ trackingNumber: 'LA680658838NL' })).length > 0);
checked.push('tracking.search');
assert.ok((await client.couriers.list()).length > 0);
checked.push('couriers.list');
await assert.rejects(client.trackers.get('no-such-tracker'), NotFoundError);
checked.push('errors');

const handled = new Set();
const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
const receive = createWebhookHandler({
  secret: 'secret',
  inbox,
  handler: (event) => void handled.add(event.eventId),
});
const sender = createWebhookSender({ target: receive, secret: 'secret', fake, duplicates: 2 });
await sender.flush();
await client.trackers.resendWebhookEvents(tracker.trackerId);
checked.push('trackers.resendWebhookEvents');
await sender.flush();
assert.equal(handled.size, results.events.length);
checked.push('webhooks');

const before = fake.requests.length;
await Promise.all(Array.from({ length: 15 }, () => client.trackers.get(tracker.trackerId)));
assert.ok(fake.requests.slice(before).every((request) => request.status === 200));
checked.push('limiter');

await server.close();
console.log(`${checked.length} checks passed: ${checked.join(', ')}`);

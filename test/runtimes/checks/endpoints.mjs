import assert from 'node:assert/strict';
import { VERSION } from 'tracking-client';

const NUMBER = 'LA680658838NL';

export const endpointChecks = {
  'every endpoint → responds over HTTP': async ({ fake, client }) => {
    const { trackers, tracking, couriers } = client;
    const created = await trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-1' });
    const { trackerId } = created;
    assert.equal((await trackers.list()).trackers[0].trackerId, trackerId);
    const bulk = await trackers.createBulk([{ trackingNumber: 'RR123456785CN' }]);
    assert.equal(bulk.status, 'success');
    const updated = await trackers.update(bulk.data[0].tracker.trackerId, { isSubscribed: false });
    assert.equal(updated.isSubscribed, false);
    fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
    const tracked = await trackers.track({ trackingNumber: NUMBER, clientTrackerId: 'order-1' });
    assert.equal(tracked.tracker.trackerId, trackerId);
    const found = await trackers.get('order-1', { searchBy: 'clientTrackerId' });
    assert.equal(found.trackerId, trackerId);
    assert.equal((await trackers.resultsByTrackingNumber(NUMBER)).length, 1);
    assert.equal((await trackers.results(trackerId)).shipment.statusMilestone, 'delivered');
    assert.equal(typeof (await trackers.resendWebhookEvents(trackerId)).totalResent, 'number');
    assert.ok(Array.isArray((await trackers.webhookHistory(trackerId)).webhooks));
    assert.equal((await tracking.search({ trackingNumber: NUMBER })).length, 1);
    assert.ok((await couriers.list()).length > 0);
    assert.deepEqual(
      new Set(fake.requests.map(({ endpoint }) => endpoint)),
      new Set(Object.keys(client.rateLimits())),
    );
    assert.ok(fake.requests.every(({ status }) => status === 200 || status === 201));
  },

  'a request → names the package and is JSON': async ({ fake, client }) => {
    await client.trackers.create({ trackingNumber: NUMBER });
    const [{ headers, body }] = fake.requests;
    assert.ok(headers['user-agent'].startsWith(`tracking-client/${VERSION}`));
    assert.match(headers['content-type'], /^application\/json/);
    assert.deepEqual(body, { trackingNumber: NUMBER });
  },
};

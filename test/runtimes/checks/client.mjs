import assert from 'node:assert/strict';
import { ConnectionError, isTrackingError, TimeoutError, TrackingClient, VERSION } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

const NUMBER = 'LA680658838NL';
const LIMIT = 10;
const AT_ONCE = { intervalMs: 1_000, initialDelayMs: 0 };

export const clientChecks = {
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

  'a burst of two and a half times the limit → no 429, in order': async ({ fake, client }) => {
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    const done = [];
    const calls = Array.from({ length: 2.5 * LIMIT }, async (_, index) => {
      await client.trackers.get(trackerId, { searchBy: 'trackerId' });
      done.push(index);
    });
    await Promise.all(calls);
    const requests = fake.requests.filter(({ endpoint }) => endpoint === 'trackers.get');
    assert.equal(done.length, 2.5 * LIMIT);
    assert.ok(requests.every(({ status }) => status === 200));
    const spanMs = requests.at(-1).receivedAtMs - requests[0].receivedAtMs;
    assert.ok(spanMs >= 2_000, `the third window began after ${spanMs} ms`);
  },

  'poll → the new events once, and an end when the service stops tracking': async ({ fake, client }) => {
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    const shipment = fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
    const seen = [];
    for await (const { newEvents } of client.trackers.poll(trackerId, AT_ONCE)) {
      seen.push(...newEvents.map(({ statusMilestone }) => statusMilestone));
      if (seen.length === 1) shipment.deliver().stopTracking();
    }
    assert.deepEqual(seen, ['in_transit', 'delivered']);
  },

  'an error → names the request, never the key': async ({ server }) => {
    const client = new TrackingClient({ baseUrl: server.url, apiKey: 'never-shown' });
    const error = await client.trackers.get('no-such-tracker').catch((reason) => reason);
    assert.equal(isTrackingError(error, 'tracker_not_found'), true);
    assert.deepEqual([error.status, error.method, error.attempts], [404, 'GET', 1]);
    const { inspect } = await import('node:util');
    assert.doesNotMatch(inspect(error, { depth: 10 }) + JSON.stringify(error) + error.stack, /never-shown/);
  },

  'a connection that breaks, a 503 and a 429 → the request is sent again': async ({ fake, client }) => {
    fake.fail('trackers.list', { kind: 'reset' });
    fake.fail('trackers.list', { status: 503 });
    fake.fail('trackers.list', { status: 429, retryAfterMs: 1_000 });
    const { attempts } = await client.trackers.list().withResponse();
    assert.equal(attempts, 4);
  },

  'a paid call whose connection breaks → not sent again': async ({ fake, client }) => {
    fake.fail('tracking.search', { kind: 'commitThenDrop' });
    await assert.rejects(client.tracking.search({ trackingNumber: NUMBER }), ConnectionError);
    assert.equal(fake.requests.length, 1);
  },

  'a paid call to a closed port → sent again, because the service received nothing': async () => {
    const server = await createFakeTrackingService().listen();
    await server.close();
    const retries = [];
    const hooks = { onRetry: (info) => void retries.push(info) };
    const options = { baseUrl: server.url, apiKey: 'key', retry: { retries: 2 }, hooks };
    const search = new TrackingClient(options).tracking.search({ trackingNumber: NUMBER });
    await assert.rejects(search, ConnectionError);
    assert.equal(retries.length, 2);
  },

  'no response, and half a response → TimeoutError': async ({ fake, client }) => {
    for (const kind of ['timeout', 'stall']) {
      fake.fail('trackers.list', { kind });
      await assert.rejects(client.trackers.list({}, { timeoutMs: 100, retry: false }), TimeoutError);
    }
  },

  'an abort while the service is silent → rejects with the reason of the signal': async ({
    fake,
    client,
  }) => {
    fake.fail('trackers.list', { kind: 'timeout' });
    const reason = new Error('closing');
    const controller = new AbortController();
    const call = client.trackers.list({}, { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 50);
    await assert.rejects(call, (error) => error === reason);
  },
};

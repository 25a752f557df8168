const { TrackingClient } = require('tracking-client');
const { createFakeTrackingService, createWebhookSender } = require('tracking-client/testing');
const { alarmEndpoint, watch } = require('../src/watch.js');

const NUMBER = 'RR123456785CN';

function makeApp() {
  const fake = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
  return { fake, client };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('a parcel that arrives in three days → the watch ends, and no timer is left', async () => {
  const { fake, client } = makeApp();
  const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
  fake.play(NUMBER, 'delivered');
  const watched = watch(client, trackerId);
  await jest.advanceTimersByTimeAsync(4 * 86_400_000);
  expect(await watched).toBe('delivered');
  expect(jest.getTimerCount()).toBe(0);
});

test('an unknown id → an error that is an instance of its class', async () => {
  const { client } = makeApp();
  const watched = watch(client, 'no-such-tracker');
  await jest.advanceTimersByTimeAsync(3_600_000);
  expect(await watched).toBe('unknown');
});

test('webhooks three times and out of order → one alarm', async () => {
  const { fake, client } = makeApp();
  await client.trackers.create({ trackingNumber: NUMBER });
  fake.play(NUMBER, 'exception', { speed: Number.POSITIVE_INFINITY });
  const ring = jest.fn();
  const target = alarmEndpoint('whsec', ring);
  const sender = createWebhookSender({ target, secret: 'whsec', fake, duplicates: 2, shuffle: true });
  const flushed = sender.flush();
  await jest.advanceTimersByTimeAsync(10_000);
  expect((await flushed).lost).toBe(0);
  expect(ring.mock.calls).toEqual([[NUMBER]]);
});

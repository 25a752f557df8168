import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

const NUMBER = 'RR123456785CN';

function makeClient({ baseUrl, apiKey, fetch }, rateLimit) {
  return new TrackingClient({ baseUrl, apiKey, fetch, rateLimit });
}

/** Lets the code under test run between two steps of the clock. */
async function advance(timers, totalMs, stepMs) {
  for (let passedMs = 0; passedMs < totalMs; passedMs += stepMs) {
    timers.tick(stepMs);
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  }
}

test('mock timers and a parcel that arrives in three days → the poller stops', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: Date.UTC(2026, 2, 10) });
  const fake = createFakeTrackingService();
  // `mock.timers` leaves the clock of the limiter alone, so by that clock all polls fall into one second.
  const client = makeClient(fake, false);
  const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
  fake.play(NUMBER, 'delivered');
  const last = client.trackers.waitUntilStopped(trackerId, { intervalMs: 21_600_000 });
  await advance(t.mock.timers, 4 * 86_400_000, 21_600_000);
  assert.equal((await last).shipment.statusMilestone, 'delivered');
});

test('a client that was used before mock.timers → a tick of one second lets its next call start', async (t) => {
  // The fake enforces no limits, because this test is about the client's own limiter.
  const fake = createFakeTrackingService({ limits: false });
  const client = makeClient(fake, { limits: { 'couriers.list': 1 } });
  await client.couriers.list();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const mocked = client.couriers.list();
  await new Promise(setImmediate);
  t.mock.timers.tick(1_100);
  assert.ok((await mocked).length > 0);
});

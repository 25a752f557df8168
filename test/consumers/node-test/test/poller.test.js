import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

const NUMBER = 'RR123456785CN';

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
  const rateLimit = false;
  const client = new TrackingClient({
    baseUrl: fake.baseUrl,
    apiKey: fake.apiKey,
    fetch: fake.fetch,
    rateLimit,
  });
  const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
  fake.play(NUMBER, 'delivered');
  const last = client.trackers.waitUntilStopped(trackerId, { intervalMs: 21_600_000 });
  await advance(t.mock.timers, 4 * 86_400_000, 21_600_000);
  assert.equal((await last).shipment.statusMilestone, 'delivered');
});

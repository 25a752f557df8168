import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

test('a client that was used before mock.timers → a tick of one second lets its next call start', async (t) => {
  // The fake enforces no limits, because this test is about the client's own limiter.
  const fake = createFakeTrackingService({ limits: false });
  const client = new TrackingClient({
    baseUrl: fake.baseUrl,
    apiKey: fake.apiKey,
    fetch: fake.fetch,
    rateLimit: { limits: { 'couriers.list': 1 } },
  });
  await client.couriers.list();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const mocked = client.couriers.list();
  await new Promise(setImmediate);
  t.mock.timers.tick(1_100);
  assert.ok((await mocked).length > 0);
});

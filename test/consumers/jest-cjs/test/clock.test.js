const { TrackingClient } = require('tracking-client');
const { createFakeTrackingService } = require('tracking-client/testing');

afterEach(() => jest.useRealTimers());

test('a client that was used before jest.useFakeTimers → its next calls resolve under fake timers', async () => {
  // The fake enforces no limits, because this test is about the client's own limiter.
  const fake = createFakeTrackingService({ limits: false });
  const limits = { 'couriers.list': 1 };
  const client = new TrackingClient({
    baseUrl: fake.baseUrl,
    apiKey: fake.apiKey,
    fetch: fake.fetch,
    rateLimit: { limits },
  });
  await client.couriers.list();
  jest.useFakeTimers();
  const faked = client.couriers.list();
  await jest.advanceTimersByTimeAsync(1_100);
  expect((await faked).length).toBeGreaterThan(0);
  jest.useRealTimers();
  expect((await client.couriers.list()).length).toBeGreaterThan(0);
});

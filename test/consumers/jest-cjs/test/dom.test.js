/** @jest-environment jsdom */
const ENTRIES = ['', '/events', '/webhooks', '/redis', '/postgres', '/testing'];

test.each(ENTRIES)('tracking-client%s in jsdom → can be required', (entry) => {
  expect(document.body).toBeDefined();
  expect(Object.keys(require(`tracking-client${entry}`))).not.toEqual([]);
});

test('a call in jsdom → an error that says what is missing', async () => {
  const { TrackingClient } = require('tracking-client');
  const { createFakeTrackingService } = require('tracking-client/testing');
  const { baseUrl, apiKey, fetch } = createFakeTrackingService();
  const client = new TrackingClient({ baseUrl, apiKey, fetch });
  await expect(client.couriers.list()).rejects.toThrow(
    'the global `Request` is missing; if this is a test in jsdom, run it in the environment `node`',
  );
});

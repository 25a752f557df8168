const { createFakeTrackingService } = require('tracking-client/testing');

const fake = createFakeTrackingService({ resultsDelayMs: 0 });
let server;
let shop;

beforeAll(async () => {
  server = await fake.listen();
  Object.assign(process.env, { TRACKING_BASE_URL: server.url, TRACKING_API_KEY: fake.apiKey });
  shop = require('../src/shop.js'); // creates its client now
});
afterAll(() => server.close());

test('a delivered parcel → its status', async () => {
  const trackerId = await shop.ship('RR123456785CN');
  fake.shipment('RR123456785CN').deliver();
  expect(await shop.status(trackerId)).toBe('delivered');
});

const { http, HttpResponse } = require('msw');
const { setupServer } = require('msw/node');
const { createFakeTrackingService } = require('tracking-client/testing');
const { trackingHandlers } = require('tracking-client/testing/msw');

const baseUrl = 'https://api.example.com/public/v1';
Object.assign(process.env, { TRACKING_BASE_URL: baseUrl, TRACKING_API_KEY: 'any' });
const { ship, status } = require('../src/shop.js');

const fake = createFakeTrackingService({ resultsDelayMs: 0 });
const server = setupServer(http.get('https://shop.example.com/stock', () => HttpResponse.json([1])));
beforeAll(() => server.listen({ onUnhandledRequest: 'error' }));
afterAll(() => server.close());

test('handlers beside those of the app → both respond', async () => {
  server.use(...trackingHandlers(fake, { baseUrl }));
  const trackerId = await ship('RR123456785CN');
  fake.shipment('RR123456785CN').deliver();
  expect(await status(trackerId)).toBe('delivered');
  expect(await (await fetch('https://shop.example.com/stock')).json()).toEqual([1]);
});

import { setupServer } from 'msw/node';
import { createFakeTrackingService } from 'tracking-client/testing';
import { trackingHandlers } from 'tracking-client/testing/msw';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { advice, ship, statusText } from '../src/orders.ts';

const ORDER = { id: 'order-1', trackingNumber: 'RR123456785CN', country: 'NL' };

const fake = createFakeTrackingService({ limits: false, plans: { perShipment: { quota: 2 } } });
const server = setupServer(...trackingHandlers(fake, { baseUrl: 'https://api.tracking.example/public/v1' }));
beforeAll(() => server.listen({ onUnhandledRequest: 'error' }));
afterEach(() => fake.reset());
afterAll(() => server.close());

it('an order that is shipped twice → one tracker', async () => {
  expect(await ship(ORDER)).toBe(await ship(ORDER));
  expect(fake.trackers).toMatchObject([{ clientTrackerId: 'order-1', trackingNumber: 'RR123456785CN' }]);
});

it('a lost response → a second request, one tracker', async () => {
  fake.fail('trackers.create', { kind: 'commitThenDrop' });
  await ship(ORDER);
  expect([fake.requests.length, fake.trackers.length]).toEqual([2, 1]);
});

it('an order before and after its first events → the status in words', async () => {
  expect(await statusText(ORDER.id)).toBe('not shipped');
  await ship(ORDER);
  expect(await statusText(ORDER.id)).toBe('waiting for the courier');
  fake.shipment(ORDER.trackingNumber).addEvent().deliver();
  expect(await statusText(ORDER.id)).toBe('delivered after 2 events');
});

it('a taken order number, then a used-up quota → the advice for each error', async () => {
  await ship(ORDER);
  expect(await ship({ ...ORDER, country: 'FR' }).catch(advice)).toBe('The order number is taken.');
  await ship({ ...ORDER, id: 'order-2' });
  expect(await ship({ ...ORDER, id: 'order-3' }).catch(advice)).toBe('Buy more trackers.');
});

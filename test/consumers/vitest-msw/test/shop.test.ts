import { setupServer } from 'msw/node';
import { createFakeTrackingService } from 'tracking-client/testing';
import { trackingHandlers } from 'tracking-client/testing/msw';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { follow, ship, statusText } from '../src/shop.ts';

const ORDER = { id: 'order-1', trackingNumber: 'RR123456785CN', country: 'NL' };

const fake = createFakeTrackingService({ limits: false });
const server = setupServer(...trackingHandlers(fake, { baseUrl: 'https://api.tracking.example/public/v1' }));
beforeAll(() => server.listen());
afterEach(() => {
  vi.useRealTimers();
  fake.reset();
});
afterAll(() => server.close());

it('a lost response, and an order that is shipped again → three requests, one tracker', async () => {
  fake.fail('trackers.create', { kind: 'commitThenDrop' });
  expect(await ship(ORDER)).toBe(await ship(ORDER));
  expect(fake.requests).toHaveLength(3);
  expect(fake.trackers).toMatchObject([{ clientTrackerId: 'order-1', trackingNumber: 'RR123456785CN' }]);
});

it('an order before and after its first events → the status in words', async () => {
  expect(await statusText(ORDER.id)).toBe('not shipped');
  await ship(ORDER);
  expect(await statusText(ORDER.id)).toBe('waiting for the courier');
  fake.fail('trackers.results', { status: 404, code: 'parcel_not_found' });
  expect(await statusText(ORDER.id)).toBe('waiting for the courier');
  fake.shipment(ORDER.trackingNumber).addEvent().deliver();
  expect(await statusText(ORDER.id)).toBe('delivered after 2 events');
});

it('a parcel held by customs → the news in order, then the poller stops', async () => {
  const trackerId = await ship(ORDER);
  vi.useFakeTimers();
  fake.play(ORDER.trackingNumber, 'customs');
  const told: string[] = [];
  const followed = follow(trackerId, (news) => told.push(news));
  await vi.advanceTimersByTimeAsync(6 * 86_400_000);
  await followed;
  expect(told.slice(-3)).toEqual(['out_for_delivery', 'delivered', 'stopped']);
  expect(told).toHaveLength(10);
});

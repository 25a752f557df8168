import { setupServer } from 'msw/node';
import { createFakeTrackingService } from 'tracking-client/testing';
import { trackingHandlers } from 'tracking-client/testing/msw';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { follow, importParcels } from '../src/import-parcels.ts';

const fake = createFakeTrackingService({ limits: false });
const server = setupServer(...trackingHandlers(fake, { baseUrl: 'https://tracking.warehouse.example/v1' }));
beforeAll(() => server.listen({ onUnhandledFrame: 'error' }));
afterEach(() => {
  vi.useRealTimers();
  fake.reset();
});
afterAll(() => server.close());

function parcels(count: number) {
  return Array.from({ length: count }, (_, index) => ({ trackingNumber: `LA${600_000_000 + index}NL` }));
}

it('120 valid parcels and one invalid parcel → 120 trackers, one problem', async () => {
  const result = await importParcels([...parcels(120), { trackingNumber: 'n/a' }]);
  expect(result.trackerIds.size).toBe(120);
  expect(fake.trackers).toHaveLength(120);
  expect([...result.problems.keys()]).toEqual(['n/a']);
});

it('a gateway that responds with an HTML page → retried, then reported', async () => {
  fake.fail('trackers.createBulk', { kind: 'html', times: Number.POSITIVE_INFINITY });
  expect((await importParcels(parcels(1))).problems.get('LA600000000NL')).toBe('http_502');
});

it('a parcel held by customs → the news in order, then the poller stops', async () => {
  const { trackerIds } = await importParcels(parcels(1));
  vi.useFakeTimers();
  fake.play('LA600000000NL', 'customs');
  const told: string[] = [];
  const followed = follow(trackerIds.get('LA600000000NL') ?? '', (news) => told.push(news));
  await vi.advanceTimersByTimeAsync(6 * 86_400_000);
  await followed;
  expect(told.slice(-3)).toEqual(['out_for_delivery', 'delivered', 'stopped']);
  expect(told).toHaveLength(10);
});

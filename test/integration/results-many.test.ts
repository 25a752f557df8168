import { expect, test } from 'vitest';
import { makeService } from './make-service.ts';

test('eight trackers, one of which hangs, and an unknown id → the results of all others, over HTTP', async () => {
  const { client, fake } = await makeService();
  const numbers = Array.from({ length: 8 }, (_, index) => `RR1234567${10 + index}CN`);
  const ids: string[] = [];
  for await (const { tracker } of client.trackers.createMany(
    numbers.map((trackingNumber) => ({ trackingNumber, clientTrackerId: `order/${trackingNumber}` })),
  ))
    ids.push(tracker?.clientTrackerId ?? '');
  for (const number of numbers) fake.shipment(number).deliver().stopTracking();
  const startedAt = Date.now();
  const hanging = fake.fail('trackers.results', { kind: 'timeout', times: 1 });
  const found: string[] = [];
  const options = { searchBy: 'clientTrackerId', timeoutMs: 60_000 } as const;
  for await (const { id, error, tracking, stopped, readAt } of client.trackers.resultsMany(
    ['unknown', ...ids],
    options,
  )) {
    if (id === 'unknown') expect(error).toMatchObject({ code: 'tracker_not_found' });
    else {
      expect({ stopped, milestone: tracking?.shipment?.statusMilestone }).toEqual({
        stopped: true,
        milestone: 'delivered',
      });
      const sentAt = Date.parse(readAt ?? '');
      expect(sentAt).toBeGreaterThan(startedAt - 2000);
      expect(sentAt).toBeLessThanOrEqual(Date.now());
    }
    found.push(id);
    if (found.length === 8) break;
  }
  expect(hanging.remaining).toBe(0);
  expect(new Set(found).size).toBe(8);
});

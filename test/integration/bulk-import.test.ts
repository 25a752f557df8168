import { describe, expect, test } from 'vitest';
import { collect, makeInputs } from '../bulk/bulk-service.ts';
import { makeService } from './make-service.ts';

describe('createMany over HTTP', () => {
  test('the same inputs a second time → outcomes `existing` with the same trackers', async () => {
    const { client } = await makeService();
    const first = await collect(client.trackers.createMany(makeInputs(120)));
    const again = await collect(client.trackers.createMany(makeInputs(120)));
    expect(new Set(again.statuses)).toEqual(new Set(['existing']));
    expect(again.outcomes.map(({ tracker }) => tracker?.trackerId)).toEqual(
      first.outcomes.map(({ tracker }) => tracker?.trackerId),
    );
  });

  test.each([
    ['outcomes `unknown`, though the trackers exist', false, 'unknown'],
    ['outcomes `existing` with retryAmbiguous, and no tracker is created twice', true, 'existing'],
  ])('a response lost after the request was carried out → %s', async (_, retryAmbiguous, status) => {
    const { fake, client } = await makeService();
    fake.fail('trackers.createBulk', { kind: 'commitThenDrop' });
    const options = { chunkSize: 2, concurrency: 1, retryAmbiguous };
    const { statuses } = await collect(client.trackers.createMany(makeInputs(4), options));
    expect(statuses).toEqual([status, status, 'created', 'created']);
    expect(fake.trackers).toHaveLength(4);
    expect(fake.requests).toHaveLength(retryAmbiguous ? 3 : 2);
  });
});

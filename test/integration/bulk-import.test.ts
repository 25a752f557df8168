import { describe, expect, test } from 'vitest';
import type { TrackerInput } from '../../src/schemas/tracker.ts';
import type { BulkOutcome } from '../../src/trackers/bulk-results.ts';
import { makeService } from './make-service.ts';

function inputsOf(count: number): TrackerInput[] {
  return Array.from({ length: count }, (_, index) => ({
    trackingNumber: `lp${String(index).padStart(8, '0')}cn`,
    clientTrackerId: `order-${index}`,
  }));
}

async function collect(run: AsyncIterable<BulkOutcome>): Promise<BulkOutcome[]> {
  const outcomes: BulkOutcome[] = [];
  for await (const outcome of run) outcomes.push(outcome);
  return outcomes;
}

describe('createMany over HTTP', () => {
  test('550 inputs against a service that allows 3 requests a second → all created, none refused', async () => {
    const { fake, client } = await makeService({ limitWindow: 'sliding' });
    const run = client.trackers.createMany(inputsOf(550));
    const outcomes = await collect(run);
    expect(run.summary()).toMatchObject({ total: 550, created: 550 });
    expect(fake.requests.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
    const idOf = new Map(fake.trackers.map((tracker) => [tracker.clientTrackerId, tracker.trackerId]));
    const wrong = outcomes.filter(
      ({ input, tracker }) => tracker?.trackerId !== idOf.get(input.clientTrackerId),
    );
    expect(wrong).toEqual([]);
  });

  test('fed in again → existing, with the same trackers', async () => {
    const { client } = await makeService();
    const first = await collect(client.trackers.createMany(inputsOf(120)));
    const again = await collect(client.trackers.createMany(inputsOf(120)));
    expect(new Set(again.map(({ status }) => status))).toEqual(new Set(['existing']));
    expect(again.map(({ tracker }) => tracker?.trackerId)).toEqual(
      first.map(({ tracker }) => tracker?.trackerId),
    );
  });

  test('an answer lost after the request was carried out → unknown, and the service has the trackers', async () => {
    const { fake, client } = await makeService();
    fake.fail('trackers.createBulk', { kind: 'commitThenDrop' });
    const outcomes = await collect(client.trackers.createMany(inputsOf(4), { chunkSize: 2, concurrency: 1 }));
    expect(outcomes.map(({ status }) => status)).toEqual(['unknown', 'unknown', 'created', 'created']);
    expect(outcomes[0]?.errors?.[0]?.code).toBe('connection_failed');
    expect(fake.trackers).toHaveLength(4);
    expect(fake.requests).toHaveLength(2);
  });

  test('the same with retryAmbiguous → existing, and no tracker twice', async () => {
    const { fake, client } = await makeService();
    fake.fail('trackers.createBulk', { kind: 'commitThenDrop' });
    const options = { chunkSize: 2, concurrency: 1, retryAmbiguous: true };
    const outcomes = await collect(client.trackers.createMany(inputsOf(4), options));
    expect(outcomes.map(({ status }) => status)).toEqual(['existing', 'existing', 'created', 'created']);
    expect(fake.trackers).toHaveLength(4);
  });
});

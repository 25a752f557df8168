// The client counts on requests that arrive within half a second, which only a machine that is not too busy can promise.
import { expect, test } from 'vitest';
import { collect, makeInputs } from '../bulk/bulk-service.ts';
import { makeService } from '../integration/make-service.ts';

test('550 inputs against a service that allows 3 requests a second → all created, none refused', async () => {
  const { fake, client } = await makeService({ limitWindow: 'sliding' });
  const run = client.trackers.createMany(makeInputs(550));
  const { outcomes } = await collect(run);
  expect(run.summary()).toMatchObject({ total: 550, created: 550 });
  expect(fake.requests.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
  const ids = new Map(fake.trackers.map((tracker) => [tracker.trackingNumber, tracker.trackerId]));
  for (const { input, tracker } of outcomes)
    expect(tracker?.trackerId).toBe(ids.get(input.trackingNumber.toUpperCase()));
});

import assert from 'node:assert/strict';

const NUMBER = 'LA680658838NL';
const AT_ONCE = { intervalMs: 1_000, initialDelayMs: 0 };

async function collect(iterable) {
  const all = [];
  for await (const item of iterable) all.push(item);
  return all;
}

export const streamChecks = {
  'createMany → one outcome for each input of an async source': async ({ fake, client }) => {
    await client.trackers.create({ trackingNumber: NUMBER });
    async function* inputs() {
      for (const trackingNumber of [NUMBER, '12345', 'RR123456785CN', 'RR123456799CN', 'RR123456808CN'])
        yield { trackingNumber };
    }
    const creation = client.trackers.createMany(inputs(), { chunkSize: 2, concurrency: 2 });
    const outcomes = (await collect(creation)).sort((a, b) => a.index - b.index);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['existing', 'invalid', 'created', 'created', 'created'],
    );
    assert.equal(creation.summary().created, 3);
    assert.equal(fake.trackers.length, 4);
  },

  'poll → the new events once, and an end when the service stops tracking': async ({ fake, client }) => {
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    const shipment = fake.shipment(NUMBER).addEvent({ statusMilestone: 'in_transit' });
    const seen = [];
    for await (const { newEvents } of client.trackers.poll(trackerId, AT_ONCE)) {
      seen.push(...newEvents.map(({ statusMilestone }) => statusMilestone));
      if (seen.length === 1) shipment.deliver().stopTracking();
    }
    assert.deepEqual(seen, ['in_transit', 'delivered']);
  },
};

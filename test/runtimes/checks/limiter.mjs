import assert from 'node:assert/strict';

const NUMBER = 'LA680658838NL';
const LIMIT = 10;

export const limiterChecks = {
  'a burst of two and a half times the limit → no 429, in order': async ({ fake, client }) => {
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    const answered = [];
    const calls = Array.from({ length: 2.5 * LIMIT }, async (_, index) => {
      await client.trackers.get(trackerId, { searchBy: 'trackerId' });
      answered.push(index);
    });
    await Promise.all(calls);
    const requests = fake.requests.filter(({ endpoint }) => endpoint === 'trackers.get');
    assert.equal(answered.length, 2.5 * LIMIT);
    assert.ok(requests.every(({ status }) => status === 200));
    const spanMs = requests.at(-1).receivedAtMs - requests[0].receivedAtMs;
    assert.ok(spanMs >= 2_000, `the third window began after ${spanMs} ms`);
  },

  'an aborted call in the queue → rejects with the reason, sends nothing': async ({ fake, client }) => {
    await client.couriers.list();
    const controller = new AbortController();
    const waiting = client.couriers.list({ signal: controller.signal });
    const rejected = assert.rejects(waiting, (reason) => reason === 'changed my mind');
    controller.abort('changed my mind');
    await rejected;
    assert.equal(fake.requests.length, 1);
  },
};

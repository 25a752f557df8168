import assert from 'node:assert/strict';

const NUMBER = 'LA680658838NL';
const LIMIT = 10;

export const limiterChecks = {
  'a burst of two and a half times the limit → no 429, in order': async ({ fake, client }) => {
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    const done = [];
    const calls = Array.from({ length: 2.5 * LIMIT }, async (_, index) => {
      await client.trackers.get(trackerId, { searchBy: 'trackerId' });
      done.push(index);
    });
    await Promise.all(calls);
    const requests = fake.requests.filter(({ endpoint }) => endpoint === 'trackers.get');
    assert.equal(done.length, 2.5 * LIMIT);
    assert.ok(requests.every(({ status }) => status === 200));
    const spanMs = requests.at(-1).receivedAtMs - requests[0].receivedAtMs;
    assert.ok(spanMs >= 2_000, `the third window began after ${spanMs} ms`);
  },
};

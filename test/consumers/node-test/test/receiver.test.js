import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { startReceiver } from '../src/receiver.js';

const NUMBER = 'RR123456785CN';
const closers = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function start() {
  const fake = createFakeTrackingService();
  const server = await fake.listen();
  const receiver = await startReceiver('whsec');
  closers.push(server.close, receiver.close);
  const client = new TrackingClient({ baseUrl: server.url, apiKey: fake.apiKey });
  const push = (options) => createWebhookSender({ target: receiver.url, secret: 'whsec', fake, ...options });
  return { fake, client, receiver, push };
}

test('pushes over HTTP, three times and out of order → one line for each event', async () => {
  const { fake, client, receiver, push } = await start();
  await client.trackers.create({ trackingNumber: NUMBER });
  fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
  const report = await push({ duplicates: 2, shuffle: true, concurrency: 4, until2xx: true }).flush();
  assert.equal(report.lost, 0);
  assert.equal(receiver.lines.length, 6);
  assert.ok(receiver.lines.includes(`${NUMBER} delivered`));
});

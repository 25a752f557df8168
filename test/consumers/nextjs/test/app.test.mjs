import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';

const NEXT = 'node_modules/next/dist/bin/next';
const SECRET = 'whsec-next';
const NUMBER = 'RR123456785CN';

const fake = createFakeTrackingService({ limits: { 'trackers.results': 2 } });
const lines = [];
let server;
let app;
let origin;

before(async () => {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
  for (const name of ['TRACKING_BASE_URL', 'TRACKING_API_KEY', 'TRACKING_WEBHOOK_SECRET']) delete env[name];
  // The build must work without the variables that the server needs.
  execFileSync(process.execPath, [NEXT, 'build'], { env, stdio: 'inherit' });
  server = await fake.listen();
  app = spawn(process.execPath, [NEXT, 'start', '--port', '0', '--hostname', '127.0.0.1'], {
    env: {
      ...env,
      TRACKING_BASE_URL: server.url,
      TRACKING_API_KEY: fake.apiKey,
      TRACKING_WEBHOOK_SECRET: SECRET,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => {
    createInterface({ input: app.stdout }).on('line', (line) => {
      lines.push(line);
      origin ??= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (line.includes('Ready')) resolve();
    });
  });
});

after(async () => {
  app?.kill('SIGKILL');
  await server?.close();
});

async function fetchPage(orderId) {
  const response = await fetch(`${origin}/orders/${orderId}`);
  return { status: response.status, html: await response.text() };
}

function ship(orderId, trackingNumber) {
  return fetch(`${origin}/api/ship`, { method: 'POST', body: JSON.stringify({ orderId, trackingNumber }) });
}

test('the page of a delivered order → its milestone and its events, oldest first', async () => {
  await ship('order-1', NUMBER);
  assert.match((await fetchPage('order-1')).html, /No news yet/);
  fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
  const { status, html } = await fetchPage('order-1');
  assert.equal(status, 200);
  assert.match(html, /<h1>delivered<\/h1>/);
  assert.ok(html.indexOf('Shipping label created') < html.indexOf('Delivered'));
});

test('an id of no shipped order → 404, and no paid tracker is created', async () => {
  const trackers = fake.trackers.length;
  for (const id of ['LA600000001NL', 'order-2', NUMBER]) assert.equal((await fetchPage(id)).status, 404);
  assert.equal(fake.trackers.length, trackers);
});

test('more pages at once than the limit allows → every page is served, no 429', async () => {
  const pages = await Promise.all([1, 2, 3, 4, 5].map(() => fetchPage('order-1')));
  assert.deepEqual(
    pages.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  assert.equal(fake.requests.filter(({ status }) => status === 429).length, 0);
});

test('a page and a route of another bundle → they share one client and one limit', async () => {
  await fetchPage('order-1');
  const response = await fetch(`${origin}/api/in-use`);
  assert.ok((await response.json()) >= 1);
});

test('webhooks three times and out of order → every event handled once', async () => {
  const target = `${origin}/api/webhooks`;
  const sender = createWebhookSender({ target, secret: SECRET, fake, duplicates: 2, shuffle: true });
  assert.equal(await sender.probe(), true);
  assert.equal((await sender.flush()).lost, 0);
  const keys = lines.filter((line) => line.startsWith('webhook ')).map((line) => line.split(' ')[1]);
  assert.ok(keys.length >= 6);
  assert.equal(new Set(keys).size, keys.length);
});

// A copy of examples/shop on PGlite: an order gets its tracker, its status, its mails and its page; SIGTERM ends the shop.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';

const NUMBER = 'RR123456785CN';
const secret = 'whsec';

async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await once(server.close(), 'close');
  return port;
}

async function waitFor(check) {
  for (let tries = 0; !(await check()); tries += 1) {
    assert.ok(tries < 3_000, `Waited in vain for ${check}`);
    await sleep(100);
  }
}

test('a copy of the shop, npm install → an order is tracked to its delivery; SIGTERM → the end, with exit code 0', async () => {
  const fake = createFakeTrackingService({ resultsDelayMs: 0 });
  const service = await fake.listen();
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = {
    TRACKING_BASE_URL: service.url,
    TRACKING_API_KEY: fake.apiKey,
    TRACKING_WEBHOOK_SECRET: secret,
  };
  const { DATABASE_URL: _, ...environment } = process.env;
  const env = { ...environment, ...settings, STAFF_TOKEN: 'staff', PORT: String(port) };
  const shop = spawn(process.execPath, ['--import', 'tsx', 'main.ts'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  shop.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await waitFor(() => output.includes('Started'));

  const headers = { authorization: 'Bearer staff', 'content-type': 'application/json' };
  const body = JSON.stringify({
    number: '1001',
    email: 'anna@example.com',
    parcel: { trackingNumber: NUMBER },
  });
  const placed = await fetch(`${url}/staff/orders`, { method: 'POST', headers, body });
  const { page } = await placed.json();
  await waitFor(() => fake.trackers.length === 1);
  fake.shipment(NUMBER).deliver();
  await createWebhookSender({ fake, target: `${url}/webhooks`, secret, until2xx: true }).flush();
  await waitFor(() => output.includes('Mail to anna@example.com: Your order 1001: Delivered.'));
  assert.match(await (await fetch(url + page)).text(), /<h1>Delivered<\/h1>/);

  shop.kill('SIGTERM');
  assert.deepEqual(await once(shop, 'exit'), [0, null]);
  assert.deepEqual(readdirSync('data'), ['pglite']);
  await service.close();
});

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

const SECRET = 'whsec-workers';
/** A request that hangs fails its own test after this time, and not the whole run. */
const TIMEOUT_MS = 20_000;

const fake = createFakeTrackingService({ resultsDelayMs: 0 });
let server;
let worker;

before(
  async () => {
    server = await fake.listen();
    const { baseUrl, apiKey, fetch } = fake;
    const { trackers } = new TrackingClient({ baseUrl, apiKey, fetch });
    await trackers.create({ trackingNumber: 'RR123456785CN', clientTrackerId: 'order-1' });
    fake.shipment('RR123456785CN').addEvent({ status: 'Accepted' });
    await build({
      entryPoints: ['src/worker.js'],
      bundle: true,
      format: 'esm',
      conditions: ['workerd', 'worker'],
      external: ['node:*', 'cloudflare:*'],
      outfile: 'worker.mjs',
      logLevel: 'error',
    });
    const settings = await readFile('wrangler.toml', 'utf8');
    worker = new Miniflare({
      modules: true,
      scriptPath: 'worker.mjs',
      compatibilityDate: /compatibility_date = "(.+)"/.exec(settings)[1],
      compatibilityFlags: JSON.parse(/compatibility_flags = (.+)/.exec(settings)[1]),
      d1Databases: ['DB'],
      bindings: {
        TRACKING_BASE_URL: server.url,
        TRACKING_API_KEY: fake.apiKey,
        TRACKING_WEBHOOK_SECRET: SECRET,
      },
    });
    const db = await worker.getD1Database('DB');
    await db.exec((await readFile('schema.sql', 'utf8')).replace(/^--.*\n/, ''));
  },
  { timeout: TIMEOUT_MS },
);

after(async () => {
  await worker.dispose();
  await server.close();
});

async function show(id = 'order-1') {
  const response = await worker.dispatchFetch(`http://shipments.test/orders/${id}`);
  return [response.status, await response.text()];
}

async function deliver(...eventIds) {
  const response = await worker.dispatchFetch('http://shipments.test/webhooks', {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      trackerId: 't1',
      events: eventIds.map((eventId) => ({ eventId, status: eventId })),
    }),
  });
  return response.status;
}

async function readSavedEvents() {
  const db = await worker.getD1Database('DB');
  const { results } = await db.prepare('SELECT status FROM events ORDER BY status').all();
  return results.map(({ status }) => status);
}

test('a client of module scope, used by one request after the other → each gets its response', {
  timeout: TIMEOUT_MS,
}, async () => {
  for (let request = 1; request <= 3; request += 1) assert.equal((await show())[0], 200);
});

test('twice as many requests at once as the limit allows → all succeed, as `rateLimit` is off and a 429 is retried', {
  timeout: TIMEOUT_MS,
}, async () => {
  const responses = await Promise.all(Array.from({ length: 20 }, () => show()));
  assert.deepEqual(
    responses.filter(([status]) => status !== 200),
    [],
  );
});

test('an unknown order → 404; a refusal of the service → 502 without the text of its error', async () => {
  assert.deepEqual(await show('LA680658838NL'), [404, 'Not found']);
  fake.fail('trackers.results', { status: 403, message: 'words for the shop only' });
  assert.deepEqual(await show(), [502, 'Not available now']);
});

test('a receiver of module scope, with webhooks after each other and at once → every event saved once', {
  timeout: TIMEOUT_MS,
}, async () => {
  assert.equal(await deliver('e1'), 200);
  assert.equal(await deliver('e2'), 200);
  const sent = [['e3'], ['e3'], ['e3', 'e4'], ['e5'], ['e6'], ['e6'], ['e7'], ['e1']];
  assert.deepEqual(new Set(await Promise.all(sent.map((ids) => deliver(...ids)))), new Set([200]));
  assert.deepEqual(await readSavedEvents(), ['e1', 'e2', 'e3', 'e4', 'e5', 'e6', 'e7']);
});

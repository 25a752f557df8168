// The CommonJS side: every entry point is required, used, and shares its classes with what `import` gives.
const assert = require('node:assert/strict');
const { createServer } = require('node:http');
const { NotFoundError, TrackingClient, VERSION } = require('tracking-client');
const manifest = require('tracking-client/package.json');
const { inboxTableSql, PostgresDedupeStore, TransactionalInbox } = require('tracking-client/postgres');
const { RedisDedupeStore, RedisLimiter } = require('tracking-client/redis');
const { createFakeTrackingService, createWebhookSender } = require('tracking-client/testing');
const webhooks = require('tracking-client/webhooks');
const { runChecks } = require('./checks/run-checks.cjs');

const NUMBER = 'LA680658838NL';
const secret = 'whsec';

/** Calls back with a service on HTTP and a client for it. */
async function withService(work) {
  const fake = createFakeTrackingService({ resultsDelayMs: 0 });
  const server = await fake.listen();
  try {
    await work({ fake, client: new TrackingClient({ baseUrl: server.url, apiKey: fake.apiKey }) });
  } finally {
    await server.close();
  }
}

runChecks({
  'the package → its own version': async () => {
    assert.equal(VERSION, manifest.version);
  },

  'a burst, results and an error over HTTP → as in a module': () =>
    withService(async ({ fake, client }) => {
      const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
      fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
      await Promise.all(Array.from({ length: 12 }, () => client.trackers.get(trackerId)));
      assert.equal((await client.trackers.results(trackerId)).shipment.statusMilestone, 'delivered');
      await assert.rejects(client.trackers.get('no-such-tracker'), NotFoundError);
      assert.ok(fake.requests.every(({ status }) => status !== 429));
    }),

  'pushes over HTTP, twice each → every event handled once': () =>
    withService(async ({ fake, client }) => {
      const { createWebhookHandler, MemoryDedupeStore, toNodeHandler, WebhookInbox } = webhooks;
      const handled = [];
      const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
      const handler = createWebhookHandler({ secret, inbox, onEvent: (event) => void handled.push(event) });
      const server = createServer(toNodeHandler(handler));
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      await client.trackers.create({ trackingNumber: NUMBER });
      fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
      const target = `http://127.0.0.1:${server.address().port}/`;
      const report = await createWebhookSender({ target, secret, fake, duplicates: 1 }).flush();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      assert.deepEqual([report.lost, handled.length], [0, 6]);
    }),

  'stores and limiter of Redis and PostgreSQL → made': async () => {
    const redis = { eval: async () => [], evalSha: async () => [] };
    const pool = {
      query: async () => ({ rows: [] }),
      connect: async () => assert.fail('nothing is sent yet'),
    };
    const made = [
      new RedisDedupeStore({ redis }),
      new RedisLimiter({ redis }),
      new PostgresDedupeStore({ pool }),
      new TransactionalInbox({ pool }),
    ];
    assert.equal(made.length, 4);
    assert.ok(inboxTableSql().includes('CREATE TABLE'));
  },

  'required and imported together → an error of one is an error of the other': () =>
    withService(async ({ client }) => {
      const imported = await import('./checks/imported.mjs');
      const direct = await import('tracking-client');
      const error = await client.trackers.get('no-such-tracker').catch((reason) => reason);
      assert.ok(error instanceof imported.NotFoundError);
      assert.ok(error instanceof direct.NotFoundError);
      assert.ok(imported.isTrackingError(error, 'tracker_not_found'));
    }),
});

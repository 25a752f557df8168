// The CommonJS side: every entry point is required, the client works, and its classes are those that `import` gives.
const assert = require('node:assert/strict');
const { NotFoundError, TrackingClient, VERSION } = require('tracking-client');
const manifest = require('tracking-client/package.json');
const { createFakeTrackingService } = require('tracking-client/testing');
const { runChecks } = require('./checks/run-checks.cjs');

const NUMBER = 'LA680658838NL';

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

  'results and an error over HTTP → as in a module': () =>
    withService(async ({ fake, client }) => {
      const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
      fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
      assert.equal((await client.trackers.results(trackerId)).shipment.statusMilestone, 'delivered');
      await assert.rejects(client.trackers.get('no-such-tracker'), NotFoundError);
    }),

  'the other entry points → required': async () => {
    for (const name of ['postgres', 'redis', 'webhooks'])
      assert.ok(Object.keys(require(`tracking-client/${name}`)).length > 0);
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

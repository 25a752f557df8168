// Everything that an environment variable could say is an option here, so a runtime may deny access to the environment.
import assert from 'node:assert/strict';
import { TrackingClient } from 'tracking-client';
import { createWebhookHandler, MemoryDedupeStore } from 'tracking-client/webhooks';
import { runChecks } from './checks/run-checks.cjs';

await runChecks({
  'a client → makes a call': async () => {
    const client = new TrackingClient({
      baseUrl: 'https://tracking.test/public/v1',
      apiKey: 'key-0123456789',
      fetch: async () => Response.json({ data: { couriers: [] } }),
    });
    assert.deepEqual(await client.couriers.list(), []);
  },
  'a webhook handler → answers': async () => {
    const store = new MemoryDedupeStore();
    const handler = createWebhookHandler({ secret: 'secret-0123456789', store, onEvent: () => {} });
    const response = await handler(new Request('https://shop.test/hook', { method: 'POST', body: '{}' }));
    assert.equal(response.status, 401);
  },
});

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { sortEvents } from 'tracking-client/events';
import { inboxTableSql, PostgresDedupeStore } from 'tracking-client/postgres';
import { RedisDedupeStore } from 'tracking-client/redis';
import { createWebhookSender } from 'tracking-client/testing';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  toNodeHandler,
  WebhookInbox,
} from 'tracking-client/webhooks';

const NUMBER = 'LA680658838NL';
const secret = 'whsec';

/** A webhook receiver behind `node:http`; passes its URL to `work`. */
async function withReceiver(options, work) {
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} });
  const handler = createWebhookHandler({ secret, inbox, ...options });
  const server = createServer(toNodeHandler(handler));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${server.address().port}/webhooks`);
  } finally {
    await handler.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

async function queueEvents({ fake, client }) {
  const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
  fake.play(NUMBER, 'delivered', { speed: Number.POSITIVE_INFINITY });
  return trackerId;
}

async function readStatus(url, init) {
  const response = await fetch(url, init);
  await response.arrayBuffer();
  return response.status;
}

export const webhookChecks = {
  'pushes over HTTP, each three times, shuffled, at once, and resent → every event handled once': async (
    stage,
  ) => {
    const trackerId = await queueEvents(stage);
    const handled = [];
    const handler = (event) => void handled.push(event);
    await withReceiver({ onEvent: handler }, async (target) => {
      const options = { duplicates: 2, shuffle: true, concurrency: 4, until2xx: true };
      const sender = createWebhookSender({ target, secret, fake: stage.fake, ...options });
      assert.equal((await sender.flush()).lost, 0);
      const { totalResent } = await stage.client.trackers.resendWebhookEvents(trackerId);
      assert.ok(totalResent > 0);
      assert.equal((await sender.flush()).accepted, totalResent);
    });
    assert.equal(handled.length, 6);
    assert.equal(new Set(handled.map(({ eventId }) => eventId)).size, 6);
    assert.equal(sortEvents(handled).at(-1).statusMilestone, 'delivered');
  },

  'requests that are no webhooks → refused over HTTP': async () => {
    await withReceiver({ onEvent: () => {}, maxBodyBytes: 1_000 }, async (url) => {
      const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
      assert.equal(await readStatus(url, { method: 'HEAD' }), 200);
      assert.equal(await readStatus(url), 405);
      assert.equal(await readStatus(url, { method: 'POST', body: '{}' }), 401);
      assert.equal(await readStatus(url, { method: 'POST', headers, body: '{' }), 400);
      assert.equal(await readStatus(url, { method: 'POST', headers, body: '{}' }), 422);
      assert.equal(await readStatus(url, { method: 'POST', headers, body: `"${'x'.repeat(2_000)}"` }), 413);
    });
  },

  'the Redis store → sends the SHA-1 of its script, and reads the reply': async () => {
    const sent = [];
    const redis = {
      eval: async () => assert.fail('the script is known'),
      evalSha: async (sha1, { keys }) => {
        sent.push({ sha1, keys });
        return [0];
      },
    };
    const store = new RedisDedupeStore({ redis, keyPrefix: 'smoke:' });
    await store.claim(['key'], { token: 'token', leaseMs: 1_000 });
    assert.match(sent[0].sha1, /^[0-9a-f]{40}$/);
    assert.match(sent[0].keys[0], /^smoke:/);
  },

  'the PostgreSQL store → creates its table': async () => {
    const statements = [];
    const query = async (text) => {
      statements.push(text);
      return { rows: [] };
    };
    await new PostgresDedupeStore({ pool: { query } }).createTable();
    assert.ok(statements.join('\n').includes('tracking_inbox'));
    assert.ok(inboxTableSql().includes('CREATE TABLE'));
  },
};

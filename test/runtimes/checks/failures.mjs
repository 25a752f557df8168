import assert from 'node:assert/strict';
import {
  AuthenticationError,
  ConnectionError,
  isTrackingError,
  NotFoundError,
  RateLimitError,
  ResponseValidationError,
  ServerError,
  TimeoutError,
  TrackingClient,
} from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';

export const failureChecks = {
  'errors of the service → their classes': async ({ fake, client }) => {
    await assert.rejects(client.trackers.get('no-such-tracker'), NotFoundError);
    fake.fail('trackers.list', { status: 401 });
    await assert.rejects(client.trackers.list(), AuthenticationError);
    fake.fail('trackers.list', { kind: 'html' });
    await assert.rejects(client.trackers.list({ retry: false }), ServerError);
    fake.fail('trackers.list', { kind: 'badJson' });
    await assert.rejects(client.trackers.list({ retry: false }), ResponseValidationError);
    fake.fail('trackers.list', { status: 429, retryAfterMs: 3_600_000 });
    await assert.rejects(client.trackers.list(), RateLimitError);
  },

  'an error → names the request, never the key': async ({ server }) => {
    const client = new TrackingClient({ baseUrl: server.url, apiKey: 'never-shown' });
    const error = await client.trackers.get('no-such-tracker').catch((reason) => reason);
    assert.equal(isTrackingError(error, 'tracker_not_found'), true);
    assert.deepEqual([error.status, error.method, error.attempts], [404, 'GET', 1]);
    const { inspect } = await import('node:util');
    assert.doesNotMatch(inspect(error, { depth: 10 }) + JSON.stringify(error) + error.stack, /never-shown/);
  },

  'a connection that breaks, a 503 and a 429 → the request is sent again': async ({ fake, client }) => {
    fake.fail('trackers.list', { kind: 'reset' });
    fake.fail('trackers.list', { status: 503 });
    fake.fail('trackers.list', { status: 429, retryAfterMs: 1_000 });
    const { attempts } = await client.trackers.list().withResponse();
    assert.equal(attempts, 4);
  },

  'a paid call whose connection breaks → not sent again': async ({ fake, client }) => {
    fake.fail('tracking.search', { kind: 'commitThenDrop' });
    await assert.rejects(client.tracking.search({ trackingNumber: 'LA680658838NL' }), ConnectionError);
    assert.equal(fake.requests.length, 1);
  },

  'a paid call to a closed port → sent again, because the service received nothing': async () => {
    const server = await createFakeTrackingService().listen();
    await server.close();
    const retries = [];
    const hooks = { onRetry: (info) => void retries.push(info) };
    const options = { baseUrl: server.url, apiKey: 'key', retry: { retries: 2 }, hooks };
    const search = new TrackingClient(options).tracking.search({ trackingNumber: 'LA680658838NL' });
    await assert.rejects(search, ConnectionError);
    assert.equal(retries.length, 2);
  },

  'no response, and half a response → TimeoutError': async ({ fake, client }) => {
    for (const kind of ['timeout', 'stall']) {
      fake.fail('trackers.list', { kind });
      await assert.rejects(client.trackers.list({ timeoutMs: 100, retry: false }), TimeoutError);
    }
  },

  'an abort while the service is silent → rejects with the reason of the signal': async ({
    fake,
    client,
  }) => {
    fake.fail('trackers.list', { kind: 'timeout' });
    const reason = new Error('closing');
    const controller = new AbortController();
    const call = client.trackers.list({ signal: controller.signal });
    setTimeout(() => controller.abort(reason), 50);
    await assert.rejects(call, (error) => error === reason);
  },
};

// The headings of docs/troubleshooting.md that quote a message, each provoked here, so that none goes stale.
import {
  ConfigurationError,
  TokenBucketLimiter,
  TrackingClient,
  type TrackingClientOptions,
} from 'tracking-client';
import { PostgresDedupeStore } from 'tracking-client/postgres';
import { createFakeTrackingService } from 'tracking-client/testing';
import { createWebhookHandler, MemoryDedupeStore, WebhookInbox } from 'tracking-client/webhooks';
import { afterEach, expect, it, vi } from 'vitest';
import type { WebhookSecretSource } from '../../src/webhooks/auth.ts';
import { parseMarkdown, readDocument } from './support/documents.ts';

const NUMBER = 'RR123456785CN';
const OTHER_NUMBER = 'LA680658838NL';

function clientOf(options: TrackingClientOptions = {}, fake = createFakeTrackingService()): TrackingClient {
  const usual = {
    baseUrl: fake.baseUrl,
    apiKey: fake.apiKey,
    fetch: fake.fetch,
    logLevel: 'silent',
  } as const;
  return new TrackingClient({ ...usual, ...options });
}

/** A client whose service always gives the same response, without retries. */
function clientMeeting(status: number, body: string, headers: Record<string, string> = {}): TrackingClient {
  const json = { 'content-type': 'application/json' };
  return clientOf({
    retry: false,
    fetch: async () => new Response(body, { status, headers: { ...json, ...headers } }),
  });
}

function inbox(): WebhookInbox {
  return new WebhookInbox({ store: new MemoryDedupeStore() });
}

async function refusedWebhook(request: Request, secret: WebhookSecretSource = 'whsec'): Promise<never> {
  let refusal: unknown;
  const onRefused = (error: unknown) => {
    refusal = error;
  };
  await createWebhookHandler({ secret, inbox: inbox(), onEvent: () => {}, onRefused })(request);
  throw refusal;
}

function webhook(secret: string): Request {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  return new Request('https://app.test/webhooks', { method: 'POST', body: '{}', headers });
}

async function usedUp(): Promise<unknown> {
  const client = clientOf({}, createFakeTrackingService({ plans: { perShipment: { quota: 0 } } }));
  return client.trackers.create({ trackingNumber: NUMBER });
}

const PROVOKED: Readonly<Record<string, () => unknown>> = {
  'no key': () => new TrackingClient({ baseUrl: 'https://api.example.com/public/v1' }),
  'no base URL': () => new TrackingClient({ apiKey: 'a-key' }),
  'http to another host': () => clientOf({ baseUrl: 'http://api.example.com/public/v1' }),
  'a misspelt option': () => clientOf({ timeout: 5 } as TrackingClientOptions), // what a caller in JavaScript may pass
  'a browser': () => {
    vi.stubGlobal('document', {});
    vi.stubGlobal('process', { env: {} });
    return clientOf();
  },
  'a placeholder for a number': () => clientOf().trackers.create({ trackingNumber: '123456789' }),
  'an old shipping date': () =>
    clientOf().trackers.create({ trackingNumber: NUMBER, shippingDate: '2020-01-01' }),
  'no results yet': async () => {
    const client = clientOf();
    const { trackerId } = await client.trackers.create({ trackingNumber: NUMBER });
    return client.trackers.results(trackerId);
  },
  'an id of yours with two payloads': async () => {
    const client = clientOf();
    await client.trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-1042' });
    return client.trackers.create({ trackingNumber: OTHER_NUMBER, clientTrackerId: 'order-1042' });
  },
  'a search without its plan': () => clientOf().tracking.search({ trackingNumber: NUMBER }),
  'a used-up plan': usedUp,
  'an unknown key': () =>
    clientOf({}, createFakeTrackingService({ apiKeys: ['a-key'] }))
      .withOptions({ apiKey: 'another' })
      .couriers.list(),
  'a 429 with a long wait': () => {
    const fake = createFakeTrackingService();
    fake.fail('couriers.list', { status: 429, retryAfter: 3_600 });
    return clientOf({}, fake).couriers.list();
  },
  'a redirect': () => clientMeeting(302, '', { location: 'https://other.example.com' }).couriers.list(),
  'a login page': () => clientMeeting(200, '<html>', { 'content-type': 'text/html' }).couriers.list(),
  'a base URL without its version': () =>
    clientMeeting(404, 'Cannot GET /couriers', { 'content-type': 'text/plain' }).couriers.list(),
  'a field of another type': () =>
    clientMeeting(200, '{"data":{"tracker":{"trackerId":1}}}').trackers.get('t'),
  'no connection': () => {
    const fake = createFakeTrackingService();
    fake.fail('couriers.list', { kind: 'reset' });
    return clientOf({ retry: false }, fake).couriers.list();
  },
  'a slow response': () => {
    const fake = createFakeTrackingService();
    fake.fail('couriers.list', { kind: 'timeout' });
    return clientOf({ retry: false, timeoutMs: 5 }, fake).couriers.list();
  },
  'no time left': () => {
    const fake = createFakeTrackingService();
    fake.fail('couriers.list', { status: 429, retryAfter: 30 });
    return clientOf({ totalTimeoutMs: 1_000 }, fake).couriers.list();
  },
  'a full queue': () => {
    const client = clientOf({ limiter: new TokenBucketLimiter({ maxQueue: 0 }) });
    return Promise.all([client.couriers.list(), client.couriers.list()]);
  },
  'a webhook handler without a secret': () => createWebhookHandler({ secret: undefined, onEvent: () => {} }),
  'a webhook with another secret': () => refusedWebhook(webhook('another')),
  'a webhook handler without a callback': () => createWebhookHandler({ secret: 'whsec', inbox: inbox() }),
  'a secret that cannot be had': () =>
    refusedWebhook(webhook('whsec'), () => Promise.reject(new Error('no connection to the vault'))),
  'a table that is not there': () => {
    const missing = Object.assign(new Error('relation does not exist'), { code: '42P01' });
    const store = new PostgresDedupeStore({ pool: { query: () => Promise.reject(missing) } });
    return store.claim(['a'], { token: 'a-receiver', leaseMs: 60_000 });
  },
  'a webhook that was read before': async () => {
    const request = webhook('whsec');
    await request.text();
    return refusedWebhook(request);
  },
  'attempts that end nowhere': () => new WebhookInbox({ store: new MemoryDedupeStore(), maxAttempts: 3 }),
  'a full memory store': async () => {
    const store = new MemoryDedupeStore({ maxKeys: 1 });
    return store.claim(['a', 'b'], { token: 'a-receiver', leaseMs: 60_000 });
  },
};

/** Quoted messages, in which `…` stands for anything. */
const quoted = parseMarkdown(readDocument('docs/troubleshooting.md')).headings.filter((heading) =>
  /^(Expected|…)/.test(heading),
);

function matches(message: string, heading: string): boolean {
  const parts = heading.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(message);
}

async function messageOf(provoke: () => unknown): Promise<string> {
  try {
    await provoke();
  } catch (error) {
    if (error instanceof Error) return error.message;
  }
  throw new ConfigurationError('Expected an error, got none');
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

it.each(Object.entries(PROVOKED))(
  '%s → its message stands in the troubleshooting page',
  async (_, provoke) => {
    vi.stubEnv('TRACKING_API_KEY', undefined);
    vi.stubEnv('TRACKING_BASE_URL', undefined);
    const message = await messageOf(provoke);
    expect(
      quoted.filter((heading) => matches(message, heading)),
      message,
    ).toHaveLength(1);
  },
);

it('every quoted message → provoked by one of these', () => {
  expect(quoted).toHaveLength(Object.keys(PROVOKED).length);
});

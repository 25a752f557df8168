// Provokes every message that a heading of docs/troubleshooting.md quotes, so that no heading goes stale.
import { TrackingClient, type TrackingClientOptions } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { createWebhookHandler } from 'tracking-client/webhooks';
import { beforeEach, expect, it, vi } from 'vitest';
import { matchesPattern, parseMarkdown, readDocument } from './support/documents.ts';

const NUMBER = 'RR123456785CN';
type Fake = ReturnType<typeof createFakeTrackingService>;

function makeClient(
  options: TrackingClientOptions = {},
  fake: Fake = createFakeTrackingService(),
): TrackingClient {
  const { baseUrl, apiKey, fetch } = fake;
  return new TrackingClient({ baseUrl, apiKey, fetch, logLevel: 'silent', retry: false, ...options });
}

/** A client whose next call fails. */
function failing(failure: Parameters<Fake['fail']>[1]): TrackingClient {
  const fake = createFakeTrackingService();
  fake.fail('*', failure);
  return makeClient({}, fake);
}

/** A client whose service always gives the same response. */
function meeting(status: number, body: string, headers: Record<string, string> = {}): TrackingClient {
  const init = { status, headers: { 'content-type': 'application/json', ...headers } };
  return makeClient({ fetch: async () => new Response(body, init) });
}

async function refuse(request: Request): Promise<never> {
  const onRefused = vi.fn();
  await createWebhookHandler({ secret: 'whsec', onEvent: () => {}, onRefused })(request);
  throw onRefused.mock.calls[0]?.[0];
}

function webhook(secret: string): Request {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  return new Request('https://app.test/webhooks', { method: 'POST', body: '{}', headers });
}

const PROVOKED: Readonly<Record<string, () => unknown>> = {
  'no key': () => new TrackingClient({ baseUrl: 'https://api.example.com/public/v1' }),
  'a browser': () => {
    vi.stubGlobal('document', {});
    // Vitest needs `nextTick` for its reports; without it the run would hang.
    vi.stubGlobal('process', { env: {}, nextTick: process.nextTick });
    return makeClient();
  },
  'an unknown id': () => makeClient().trackers.get('nobody'),
  'an id of yours with two payloads': async () => {
    const { trackers } = makeClient();
    await trackers.create({ trackingNumber: NUMBER, clientTrackerId: 'order-1042' });
    return trackers.create({ trackingNumber: 'LA680658838NL', clientTrackerId: 'order-1042' });
  },
  'a base URL without a path': () =>
    makeClient({ baseUrl: 'https://api.example.com' }).trackers.create({ trackingNumber: NUMBER }),
  'a 429': () => failing({ status: 429, retryAfterMs: 3_600_000 }).couriers.list(),
  'a call during a long pause': async () => {
    const client = failing({ status: 429, retryAfterMs: 120_000 });
    await client.couriers.list().catch(() => {});
    return client.couriers.list();
  },
  'a redirect': () => meeting(302, '', { location: 'https://other.example.com' }).couriers.list(),
  'a login page': () => meeting(200, '<html>', { 'content-type': 'text/html' }).couriers.list(),
  'no connection': () => failing({ kind: 'reset' }).couriers.list(),
  'a webhook with another secret': () => refuse(webhook('another')),
  'a webhook that was read before': async () => {
    const request = webhook('whsec');
    await request.text();
    return refuse(request);
  },
};

/** Quoted messages, in which `…` stands for anything. */
const quoted = parseMarkdown(readDocument('docs/troubleshooting.md')).headings.filter((heading) =>
  /^(`|TrackingClient does|The re|Wrong webhook secret|…)/.test(heading),
);

beforeEach(() => {
  vi.stubEnv('TRACKING_API_KEY', undefined);
  vi.stubEnv('TRACKING_BASE_URL', undefined);
});
it.each(Object.entries(PROVOKED))(
  '%s → its message is quoted in the troubleshooting page',
  async (_, provoke) => {
    const error: unknown = await (async () => provoke())().catch((reason: unknown) => reason);
    const message = error instanceof Error ? error.message : 'no error';
    expect(
      quoted.filter((heading) => matchesPattern(message, heading)),
      message,
    ).toHaveLength(1);
  },
);

it('every quoted message → produced by one of these failures', () => {
  expect(quoted).toHaveLength(Object.keys(PROVOKED).length);
});

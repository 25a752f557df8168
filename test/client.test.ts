import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../src/client.ts';
import { ENDPOINT_NAMES, endpoints } from '../src/endpoints.ts';
import { ConfigurationError, isTrackingError } from '../src/errors.ts';
import { TRACKER } from './contract/support/samples.ts';
import { EVERY_CALL } from './support/calls.ts';
import { API_KEY, BASE_URL, catchRejection, makeClient } from './support/make-client.ts';
import { settled } from './support/settled.ts';
import { settleInVirtualTime } from './support/virtual-time.ts';

const COURIERS = { body: { data: [] } };

describe('every endpoint of the table', () => {
  test.each(EVERY_CALL)(
    '%s → sent exactly once, with its headers; resolves to its result',
    async (_name, sample) => {
      const { client, requests } = makeClient({ body: sample.response });
      const { signal } = new AbortController();
      const options = { headers: { 'X-Tenant': 'a' }, priority: 'background', signal } as const;
      const call = sample.call(client, options);
      await settled();
      expect(requests).toHaveLength(1);
      expect(await call).toEqual(sample.result);
      expect(requests).toHaveLength(1);
      const [request] = requests;
      const body = sample.sentBody === undefined ? '' : JSON.stringify(sample.sentBody);
      expect(request).toMatchObject({ method: sample.method, target: sample.target, body });
      expect(Object.fromEntries(request?.headers ?? [])).toMatchObject({
        authorization: `Bearer ${API_KEY}`,
        accept: 'application/json',
        'user-agent': expect.stringMatching(/^tracking-client\/\d+\.\d+\.\d+ node\/\d+/),
        'x-tenant': 'a',
      });
      expect(request?.headers.get('content-type')).toBe(body === '' ? null : 'application/json');
    },
  );

  test.each(EVERY_CALL)('%s with an invalid option → ConfigurationError', async (_name, sample) => {
    const { client, requests } = makeClient({ body: sample.response });
    const call = sample.call(client, { timeoutMs: Number.NaN });
    expect(await catchRejection(call)).toBeInstanceOf(ConfigurationError);
    expect(requests).toHaveLength(0);
  });
});

describe('a call', () => {
  test('withResponse → resolves to data, response, request id, rate limit and attempts', async () => {
    const headers = {
      'x-request-id': 'req-1',
      'ratelimit-limit': '1',
      'ratelimit-remaining': '0',
      'ratelimit-reset': '1',
    };
    const { client } = makeClient([{ status: 500 }, { ...COURIERS, status: 201, headers }]);
    const result = await settleInVirtualTime(() => client.couriers.list().withResponse());
    expect(result).toMatchObject({
      data: [],
      requestId: 'req-1',
      rateLimit: { limit: 1, remaining: 0, resetMs: 1_000 },
      attempts: 2,
    });
    expect(result.response).toBeInstanceOf(Response);
    expect(result.response.status).toBe(201);
    expect(result.response.url).toBe(`${BASE_URL}/couriers`);
    expect(result.response.headers.get('x-request-id')).toBe('req-1');
    expect(await result.response.json()).toEqual({ data: [] });
  });

  test('withResponse of a response without a body → resolves to the response with its status', async () => {
    const { client } = makeClient({ status: 204 });
    const { data, response } = await client.trackers.resendWebhookEvents('tracker-1').withResponse();
    expect(data).toEqual({});
    expect(response.status).toBe(204);
    expect(await response.text()).toBe('');
  });

  test('an input that is changed after the call → the unchanged input is sent', async () => {
    const { client, requests } = makeClient({ body: { data: { tracker: TRACKER } } });
    const input = { trackingNumber: 'LA680658838NL' };
    const call = client.trackers.create(input);
    input.trackingNumber = 'RR123456785CN';
    await call;
    expect(requests[0]?.body).toBe('{"trackingNumber":"LA680658838NL"}');
  });

  test('headers of a call → replace those of the client for this call only', async () => {
    const { client, requests } = makeClient(COURIERS, { headers: { 'x-a': 'client', 'x-b': 'client' } });
    await client.couriers.list({ headers: { 'X-A': 'call' } });
    await client.couriers.list();
    expect(requests[0]?.headers.get('x-a')).toBe('call');
    expect(requests[0]?.headers.get('x-b')).toBe('client');
    expect(requests[1]?.headers.get('x-a')).toBe('client');
  });
});

describe('null of a caller without types', () => {
  const none = null as never;
  const nothing: [method: string, call: (client: TrackingClient) => PromiseLike<unknown>][] = [
    ...EVERY_CALL.map(([name, { call }]): (typeof nothing)[number] => [
      `${name} with options`,
      (client) => call(client, none),
    ]),
    ['trackers.list', ({ trackers }) => trackers.list(none)],
    ['trackers.listAll', ({ trackers }) => trackers.listAll(none).next()],
    ['trackers.create', ({ trackers }) => trackers.create(none)],
    ['trackers.createBulk', ({ trackers }) => trackers.createBulk(none)],
    ['trackers.track', ({ trackers }) => trackers.track(none)],
    ['trackers.get', ({ trackers }) => trackers.get(none, none)],
    ['trackers.update', ({ trackers }) => trackers.update('id', none)],
    ['trackers.results', ({ trackers }) => trackers.results('id', none)],
    ['trackers.pollOnce', ({ trackers }) => trackers.pollOnce(none)],
    ['trackers.pollOnce with options', ({ trackers }) => trackers.pollOnce('id', none)],
    ['trackers.waitUntilStopped', ({ trackers }) => trackers.waitUntilStopped(none)],
    ['trackers.waitUntilStopped with options', ({ trackers }) => trackers.waitUntilStopped('id', none)],
    ['tracking.search', ({ tracking }) => tracking.search(none)],
    ['request', (client) => client.request(none)],
  ];

  test.each(nothing.filter(([name]) => name !== 'trackers.list with options'))(
    '%s → a typed rejection, nothing is sent',
    async (_method, call) => {
      const { client, requests } = makeClient();
      // A synchronous throw would end the test.
      expect(isTrackingError(await catchRejection(call(client)))).toBe(true);
      expect(requests).toEqual([]);
    },
  );
});

describe('rateLimits', () => {
  test('no request yet → the limit of every endpoint, nothing in use', () => {
    const { client } = makeClient(COURIERS, { rateLimit: {} });
    const limits = client.rateLimits();
    expect(Object.keys(limits)).toEqual([...ENDPOINT_NAMES]);
    for (const name of ENDPOINT_NAMES) {
      expect(limits[name]).toEqual({
        limit: endpoints[name].limitPerSecond,
        inUse: 0,
        queued: 0,
        pausedUntil: null,
      });
    }
  });

  test('after a 429 → the endpoint is paused until the end of its Retry-After', async () => {
    vi.useFakeTimers({ now: 1_000_000 });
    const refused = { status: 429, headers: { 'retry-after': '7' } };
    const { client } = makeClient(refused, { rateLimit: {}, retry: false });
    await catchRejection(client.couriers.list());
    expect(client.rateLimits()['couriers.list'].pausedUntil).toBe(1_007_000);
    expect(client.rateLimits()['trackers.get'].pausedUntil).toBeNull();
  });

  test('rateLimit: false → the limit of every endpoint, nothing in use', async () => {
    const { client } = makeClient(COURIERS, { rateLimit: false });
    await client.couriers.list();
    expect(client.rateLimits()['couriers.list']).toEqual({
      limit: 1,
      inUse: 0,
      queued: 0,
      pausedUntil: null,
    });
  });
});

test('inspect and JSON → the three resources of the client and none of its options', () => {
  const { client } = makeClient();
  expect(Object.keys(client)).toEqual(['trackers', 'tracking', 'couriers']);
  expect(JSON.parse(JSON.stringify(client))).toEqual({ trackers: {}, tracking: {}, couriers: {} });
  expect(inspect(client, { depth: 9, showHidden: true })).not.toContain(API_KEY);
});

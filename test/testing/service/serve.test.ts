import { describe, expect, it } from 'vitest';
import { ENDPOINT_NAMES, type Endpoint, endpoints } from '../../../src/endpoints.ts';
import type { FakeTrackingServiceOptions, RecordedRequest } from '../../../src/testing/index.ts';
import { makeFake, NUMBER, refusal, sampleCalls } from '../make-fake.ts';

describe('authentication', () => {
  it.each<[string, FakeTrackingServiceOptions, [number, string | undefined]]>([
    ['', {}, [400, 'auth_missing_header']],
    ['some-key', {}, [400, 'auth_invalid_header']],
    ['Bearer two words', {}, [400, 'auth_invalid_header']],
    ['Bearer whatever', {}, [200, undefined]],
    ['  Bearer whatever ', {}, [200, undefined]],
    ['Bearer   whatever', {}, [200, undefined]],
    ['XBearer whatever', {}, [400, 'auth_invalid_header']],
    ['bearer second', { apiKeys: ['first', 'second'] }, [200, undefined]],
    ['Bearer third', { apiKeys: ['first', 'second'] }, [401, 'auth_invalid_api_key']],
  ])('the header %j with %j → status and error code %j', async (authorization, options, outcome) => {
    const response = await makeFake(options).call('GET', '/couriers', undefined, { authorization });
    expect(refusal(response)).toEqual(outcome);
  });

  it('a request with a refused key → does not count against the limit', async () => {
    const { call } = makeFake({ apiKeys: ['right'], limits: {} });
    await call('GET', '/couriers', undefined, { authorization: 'Bearer wrong' });
    expect((await call('GET', '/couriers')).status).toBe(200);
  });
});

describe('the path', () => {
  it.each([
    ['GET', '/public/v1/trackers/bulk', 'trackers.get'],
    ['GET', '/public/v1/trackers/a%2Fb', 'trackers.get'],
    ['GET', '/public/v1/trackers/search/AB%2F1/results', 'trackers.resultsByTrackingNumber'],
    ['GET', '/public/v1/trackers/search/results', 'trackers.results'],
    ['GET', '/any/prefix/v2/couriers', 'couriers.list'],
    ['GET', '/public/v1/nothing', undefined],
    ['GET', '/public/v1/couriers/', undefined],
    ['GET', '/public/v1/trackers//results', undefined],
    ['GET', '/public/v1', undefined],
  ])('%s %s → endpoint %s', async (method, path, endpoint) => {
    const { fake } = makeFake();
    const response = await fake.fetch(`https://elsewhere.test${path}`, { method });
    expect(fake.requests[0]?.endpoint).toBe(endpoint);
    if (endpoint === undefined) expect(response.status).toBe(404);
  });

  it.each(['https://host.test/api/', 'https://host.test/'])(
    'below the base URL %s → served',
    async (baseUrl) => {
      const { fake, call } = makeFake({ baseUrl });
      expect((await call('GET', '/couriers')).status).toBe(200);
      expect((await call('GET', '/x/couriers')).status).toBe(404);
      expect(fake.baseUrl).toBe(baseUrl.replace(/\/$/, ''));
    },
  );

  it('a method that the path does not support → 405 with Allow', async () => {
    const { call } = makeFake();
    const { status, headers } = await call('DELETE', '/trackers');
    expect([status, headers.get('allow')]).toEqual([405, 'POST, GET']);
  });

  it.each([
    ['/nothing', 404, 'path_not_found'],
    ['/trackers/%zz', 404, 'tracker_not_found'],
  ])('%s → %i %s in the error shape of the service', async (path, status, code) => {
    const response = await makeFake().call('GET', path);
    expect(response.status).toBe(status);
    expect(response.body).toEqual({ errors: [{ code, message: expect.any(String) }], data: null });
  });
});

describe('every response', () => {
  it('any request → an x-request-id of its own, and the fake clock as its Date', async () => {
    const { call } = makeFake();
    const [first, second] = [await call('GET', '/couriers'), await call('GET', '/couriers')];
    expect(first.headers.get('x-request-id')).not.toBe(second.headers.get('x-request-id'));
    expect(first.headers.get('date')).toBe('Tue, 10 Mar 2026 12:00:00 GMT');
  });

  it.each([
    ['', [400, 'parsing_error']],
    ['text/plain', [400, 'parsing_error']],
    ['application/json; charset=utf-8', [201, undefined]],
    ['x-application/json', [400, 'parsing_error']],
  ])('a body declared as %j → status and error code %j', async (type, outcome) => {
    const body = { trackingNumber: NUMBER };
    const response = await makeFake().call('POST', '/trackers', body, { 'content-type': type });
    expect(refusal(response)).toEqual(outcome);
  });
});

describe('limits', () => {
  /** Sends requests at times after the start of a second, and returns the responses. */
  async function send(options: FakeTrackingServiceOptions, timesMs: readonly number[], path = '/couriers') {
    const { call, clock } = makeFake({ limits: {}, ...options });
    const startMs = clock.nowMs;
    const responses = [];
    for (const timeMs of timesMs) {
      clock.nowMs = startMs + timeMs;
      responses.push(await call('GET', path));
    }
    return { startSeconds: startMs / 1000, responses, statuses: responses.map(({ status }) => status) };
  }

  it('the first request → both header sets and no Retry-After, also for a refusal by the handler', async () => {
    const { responses, startSeconds } = await send({}, [300], '/trackers/nobody');
    expect(Object.fromEntries(responses[0]?.headers ?? [])).toMatchObject({
      'ratelimit-limit': '10',
      'ratelimit-remaining': '9',
      'ratelimit-reset': '1',
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '9',
      'x-ratelimit-reset': String(startSeconds + 1),
    });
    expect(responses[0]?.headers.has('retry-after')).toBe(false);
  });

  it.each<[string, number[], number[], FakeTrackingServiceOptions]>([
    ['fixed windows start each second', [200, 200], [999, 1000], {}],
    ['a sliding window is the last second', [200, 429, 200], [999, 1998, 1999], { limitWindow: 'sliding' }],
    ['a limit of the test', [200, 200, 429], [0, 0, 0], { limits: { 'couriers.list': 2 } }],
    ['a clock that steps back locks nobody out', [200, 200], [3_600_000, 0], { limitWindow: 'sliding' }],
    ['limits false counts nothing', [200, 200, 200], [0, 0, 0], { limits: false }],
  ])('%s → statuses %j', async (_, expected, timesMs, options) => {
    expect((await send(options, timesMs)).statuses).toEqual(expected);
  });

  it.each(ENDPOINT_NAMES)(
    '%s, more requests in a second than the table allows → 429, and no 429 in the next second',
    async (name) => {
      const { limitPerSecond }: Endpoint = endpoints[name];
      const { call, createId, advance } = makeFake({ plans: { perCall: true }, limits: {} });
      const sample = sampleCalls[name](await createId());
      advance(1000);
      const statuses: number[] = [];
      for (let sent = 0; sent <= limitPerSecond; sent += 1) statuses.push((await call(...sample)).status);
      advance(1000);
      expect(statuses.indexOf(429)).toBe(limitPerSecond);
      expect((await call(...sample)).status).not.toBe(429);
    },
  );

  it('one endpoint at its limit → other endpoints still respond', async () => {
    const { call } = makeFake({ limits: { 'couriers.list': 0 } });
    expect((await call('GET', '/couriers')).status).toBe(429);
    expect((await call('GET', '/trackers?page=1&limit=1')).status).toBe(200);
  });

  it('a sliding window → resets a second after the oldest request in it', async () => {
    const options = { limitWindow: 'sliding', limits: { 'couriers.list': 2 } } as const;
    const { responses, startSeconds } = await send(options, [0, 900, 950]);
    expect(responses[2]?.headers.get('retry-after')).toBe('1');
    expect(responses[2]?.headers.get('x-ratelimit-reset')).toBe(String(startSeconds + 1));
  });
});

describe('fake.requests and onRequest', () => {
  it('a request → recorded once with endpoint, method, path, query, parsed body, headers without the key, status and id', async () => {
    const told: RecordedRequest[] = [];
    const { fake, call } = makeFake({ onRequest: (request) => told.push({ ...request }) });
    const body = { trackingNumber: NUMBER };
    const { headers } = await call('POST', '/trackers?debug=1', body, { 'x-trace': '7' });
    expect(fake.requests).toEqual([
      {
        endpoint: 'trackers.create',
        method: 'POST',
        path: '/public/v1/trackers',
        query: { debug: '1' },
        body,
        headers: expect.objectContaining({ 'x-trace': '7' }),
        receivedAtMs: Date.UTC(2026, 2, 10, 12),
        requestId: headers.get('x-request-id'),
        status: 201,
        failure: undefined,
        error: undefined,
      },
    ]);
    expect(told).toEqual(fake.requests);
    expect(JSON.stringify(fake.requests)).not.toContain(fake.apiKey);
  });

  it('a body that is not JSON → kept as text, with the reason of the refusal', async () => {
    const { fake, call } = makeFake();
    await call('POST', '/trackers', '{');
    expect(fake.requests[0]).toMatchObject({ body: '{', status: 400, error: { code: 'parsing_error' } });
  });

  it('an unknown path, and a broken connection → recorded and passed to onRequest', async () => {
    const told: RecordedRequest[] = [];
    const { fake, call } = makeFake({ onRequest: (request) => told.push(request) });
    await call('GET', '/nothing');
    fake.fail('couriers.list', { kind: 'reset' });
    await call('GET', '/couriers').catch(() => {});
    expect(told).toMatchObject([
      { endpoint: undefined, status: 404, error: { code: 'path_not_found' } },
      { endpoint: 'couriers.list', status: null, failure: 'reset', error: undefined },
    ]);
    expect(fake.requests).toEqual(told);
  });

  it('historyLimit 2 and three requests → the latest two are kept', async () => {
    const { fake, call } = makeFake({ historyLimit: 2 });
    for (const id of ['a', 'b', 'c']) await call('GET', `/trackers/${id}`);
    expect(fake.requests.map(({ path }) => path)).toEqual(['/public/v1/trackers/b', '/public/v1/trackers/c']);
  });
});

describe('countries', () => {
  it('every pair of letters → a country that Intl can name, or refused; 250 countries in all', async () => {
    const { create } = makeFake();
    const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
    const pairs = letters.flatMap((first) => letters.map((second) => first + second));
    const names = new Intl.DisplayNames('en', { type: 'region' });
    const known: string[] = [];
    for (const originCountryCode of pairs)
      if ((await create({ originCountryCode })).status === 201) known.push(originCountryCode);
    expect(known).toHaveLength(250);
    expect(known.filter((code) => names.of(code) === code)).toEqual([]);
  });

  it.each(['us', 'Us', 'usa', 'UsA', ' US', 'XX', 'EU'])(
    '%j, on every endpoint that takes a country → 400 validation_error',
    async (code) => {
      const { call, createId } = makeFake({ plans: { perCall: true } });
      const id = await createId({ trackingNumber: 'LA680658838NL' });
      for (const field of ['originCountryCode', 'destinationCountryCode']) {
        const input = { trackingNumber: NUMBER, [field]: code };
        for (const path of ['/trackers', '/trackers/track', '/tracking/search'])
          expect(refusal(await call('POST', path, input))).toEqual([400, 'validation_error']);
        expect(refusal(await call('PATCH', `/trackers/${id}`, { [field]: code }))).toEqual([
          400,
          'validation_error',
        ]);
        const { status, body } = await call('POST', '/trackers/bulk', [input]);
        expect([status, body.data[0]?.errors?.[0]?.code]).toEqual([400, 'validation_error']);
      }
    },
  );

  it.each(['CHN CN', 'DEU DE', 'GBR GB', 'AUT AT', 'AUS AU', 'XKX XK', 'FRA FR'])(
    '%s → the same country',
    async (codes) => {
      const [alpha3, alpha2] = codes.split(' ');
      const { fake, track } = makeFake();
      fake.shipment(NUMBER).deliver();
      const { body } = await track({ originCountryCode: alpha3 });
      expect(body.data.trackings[0].shipment.originCountryCode).toBe(alpha2);
    },
  );
});

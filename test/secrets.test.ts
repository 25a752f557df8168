import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { TrackingError } from '../src/errors.ts';
import { TRACKER } from './contract/support/samples.ts';
import { decodeAll, ENCODINGS } from './support/encodings.ts';
import { API_KEY, catchRejection, makeClient, type Step } from './support/make-client.ts';
import { settled } from './support/settled.ts';
import { settleInVirtualTime } from './support/virtual-time.ts';

/** Prints everything that a log could show of a value, and more. */
function everything(value: unknown): string {
  const error = value instanceof Error ? value : new Error('not an error');
  return [
    inspect(value, { depth: 20, showHidden: true, getters: true, maxStringLength: null }),
    JSON.stringify(value),
    String(value),
    error.stack,
    error.message,
    inspect(error.cause, { depth: 20, showHidden: true, maxStringLength: null }),
    JSON.stringify(Reflect.get(error, 'body') ?? null),
    JSON.stringify([...(Reflect.get(error, 'headers') ?? [])]),
  ].join('\n');
}

const bearer = `Bearer ${API_KEY}`;

test('a body that echoes the key → the key is masked, the rest is unchanged', async () => {
  const { client } = makeClient({ status: 400, body: { errors: [{ code: 'c', message: `got ${bearer}` }] } });
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    message: 'GET https://api.example.test/public/v1/couriers responded with 400: c: got Bearer [redacted]',
    errors: [{ code: 'c', message: 'got Bearer [redacted]' }],
    body: { errors: [{ code: 'c', message: 'got Bearer [redacted]' }] },
  });
});

describe('a key that is an ordinary word', () => {
  test('results that contain the word → returned unchanged', async () => {
    const tracker = { ...TRACKER, trackerId: 'track-1', shipmentReference: 'true track is data' };
    const { client } = makeClient({ body: { data: { tracker } } }, { apiKey: 'track' });
    const { data, response } = await client.trackers.get('track-1').withResponse();
    expect(data).toEqual(tracker);
    expect(await response.json()).toEqual({ data: { tracker } });
  });

  test.each(['key', 'errors', 'a', 'auth_invalid_api_key'])(
    'key %j, code auth_invalid_api_key → the code is kept',
    async (apiKey) => {
      const body = { errors: [{ code: 'auth_invalid_api_key', message: 'm' }], data: null };
      const { client } = makeClient({ status: 401, body }, { apiKey });
      expect(await catchRejection(client.couriers.list())).toMatchObject({
        name: 'AuthenticationError',
        code: 'auth_invalid_api_key',
      });
    },
  );

  const input = { trackingNumber: 'RR123456785CN', clientTrackerId: 'any', shipmentReference: 'any order' };
  const tracker = { ...TRACKER, ...input, trackerId: 'any-1' };
  const echo = { code: 'tracker_conflict', message: 'the key any', key: ['any'] };
  const item = { itemStatus: 'error', inputData: input, tracker, errors: [echo], note: 'any' };
  const body = { status: 'partial', summary: null, data: [item], error: echo, errors: [echo] };
  const masked = { code: 'tracker_conflict', message: 'the key [redacted]', key: ['[redacted]'] };

  test('a bulk result that contains the word → masked in its errors, but not in inputs, trackers and other fields', async () => {
    const { client } = makeClient({ status: 207, body }, { apiKey: 'any' });
    expect(await client.trackers.createBulk([input])).toEqual({
      ...body,
      data: [{ ...item, errors: [masked] }],
      error: masked,
      errors: [masked],
    });
  });

  test('createMany with an id that is the word → created, and its tracker unchanged', async () => {
    const success = { status: 'success', summary: null, error: null };
    const created = {
      ...success,
      data: [{ itemStatus: 'created', inputData: input, tracker, errors: null }],
    };
    const { client } = makeClient({ status: 201, body: created }, { apiKey: 'any' });
    const outcomes = [];
    for await (const outcome of client.trackers.createMany([input])) outcomes.push(outcome);
    expect(outcomes).toEqual([{ index: 0, input, status: 'created', tracker }]);
  });

  test('a mismatch whose field has the word as its name → the data is unchanged, the mismatch is masked', async () => {
    const wrong = { ...TRACKER, any: 'any', shipmentReference: ['any'] };
    const { client } = makeClient({ body: { data: { tracker: wrong } } }, { apiKey: 'shipmentReference' });
    const { data, mismatched } = await client.trackers.get('any').withResponse();
    expect(data).toEqual(wrong);
    expect(mismatched).toMatchObject([
      { path: ['[redacted]'], message: expect.stringContaining('`[redacted]`') },
    ]);
  });
});

test.each([
  ['plain', API_KEY],
  ['percent-encoded', API_KEY.replaceAll('-', '%2D')],
])(
  'an error body with the key across `maxResponseBytes`, %s → no part of the key is left',
  async (_form, key) => {
    const maxResponseBytes = 100;
    for (let before = 60; before < 110; before += 1) {
      for (const after of [0, 5, 500]) {
        const text = '.'.repeat(before) + key + '.'.repeat(after);
        const chunks = new ReadableStream({
          start(controller) {
            for (const chunk of text.match(/.{1,9}/g) ?? []) controller.enqueue(Buffer.from(chunk));
            controller.close();
          },
        });
        const respond = () => new Response(chunks, { status: 500 });
        const { client } = makeClient(respond, { retry: false, maxResponseBytes });
        const { body } = Object(await catchRejection(client.couriers.list()));
        expect(body).toMatch(/^\.*(?:\[redacted\])?\.*$/);
        expect(body.length).toBeLessThanOrEqual(maxResponseBytes + '[redacted]'.length);
      }
    }
  },
);

test('a key function → called before every attempt, so that a rotated key is used at once', async () => {
  const keys = ['old', 'new'];
  const apiKey = () => keys.shift() ?? '';
  const { client, requests } = makeClient([{ status: 500 }, { body: { data: [] } }], { apiKey });
  await settleInVirtualTime(() => client.couriers.list());
  expect(requests.map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer old', 'Bearer new']);
});

test('a bulk item error that contains the key → masked in the outcome', async () => {
  const message = `You sent ${bearer}`;
  const body = {
    status: 'error',
    summary: null,
    data: null,
    error: { code: 'bulk_create_limit_exceeded', message },
  };
  const { client } = makeClient({ body }, { retry: false });
  const outcomes = [];
  for await (const outcome of client.trackers.createMany([{ trackingNumber: 'RR123456785CN' }]))
    outcomes.push(outcome);
  expect(outcomes).toMatchObject([{ errors: [{ code: 'bulk_create_limit_exceeded' }] }]);
  expect(JSON.stringify(outcomes)).not.toContain(API_KEY);
});

test('a failure of fetch with line breaks and terminal codes → one printable line', async () => {
  const { client } = makeClient(new TypeError('a\u001b[2J\nforged\u2028line'), { retry: false });
  const error = await catchRejection(client.couriers.list());
  expect(error).toMatchObject({
    message: expect.stringMatching(/got no response: .* a \[2J forged line; correct that function$/),
  });
});

const SPECIAL_KEY = 'ab+cd/ef&gh==0123';

describe.each(Object.entries(ENCODINGS))('a key that a server sends back, %s', (_encoding, encode) => {
  const key = encode(SPECIAL_KEY);
  const echo = `before ${key} after`;
  test.each<[where: string, response: Step]>([
    ['text', { status: 502, body: echo, headers: { 'content-type': 'text/plain' } }],
    ['the text of a JSON string', { status: 401, body: `{"errors":[{"code":"c","message":"${echo}"}]}` }],
    ['a JSON string', { status: 401, body: { errors: [{ code: 'c', message: echo, [echo]: [echo] }] } }],
    ['a JSON field', { status: 401, body: { [echo]: echo } }],
    [
      'HTML',
      { status: 403, body: `<p title="${echo}">${echo}</p>`, headers: { 'content-type': 'text/html' } },
    ],
    ['a code', { status: 400, body: { errors: [{ code: echo }] } }],
    ['JSON with another escape', { status: 400, body: `{"a":"${SPECIAL_KEY.replaceAll('+', '\\u002b')}"}` }],
    ['the 500th character of a long text', { status: 500, body: 'x'.repeat(490) + key }],
    ['headers', { status: 500, headers: { 'x-request-id': echo, 'x-echo': echo } }],
    ['a redirect', { status: 302, headers: { location: `https://evil.test/?key=${key}` } }],
    ['a success that is not JSON', { status: 200, body: echo }],
    ['the content type', { status: 200, body: 'x', headers: { 'content-type': `text/${key}` } }],
    ['a success of the wrong shape', { status: 200, body: { data: { message: echo } } }],
    [
      'a field of a success',
      { status: 200, body: { data: { couriers: [{ courierCode: 5, courierName: [echo] }] } } },
    ],
    ['a failure of fetch', new TypeError(echo, { cause: new Error(echo) })],
    [
      'a request kept on a failure of fetch',
      Object.assign(new TypeError('fetch failed'), { request: { headers: { authorization: echo } } }),
    ],
  ])(
    'in %s → nowhere to be read, neither in the error nor in log lines and arguments of hooks',
    async (_where, response) => {
      const lines: unknown[] = [];
      const log = (...line: unknown[]) => void lines.push(line);
      const { client } = makeClient(response, {
        apiKey: SPECIAL_KEY,
        retry: { retries: 1, maxBackoffMs: 1 },
        invalidResponse: 'throw',
        logger: { debug: log, info: log, warn: log, error: log },
        logLevel: 'debug',
        hooks: { onRequest: log, onResponse: log, onError: log, onRetry: log, onMismatch: log, onDone: log },
      });
      const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
      expect(error).toBeInstanceOf(TrackingError);
      const shown = [everything(error), inspect(lines, { depth: 20, maxStringLength: null })];
      for (const text of shown) expect(decodeAll(text)).not.toContain(SPECIAL_KEY);
    },
  );
});

describe('a URL with a user name and a password', () => {
  const URL_TEXT = 'http://agent:pa55@w0rd#x@proxy.test:3128';

  test.each<[where: string, failure: unknown, kept: string]>([
    [
      'the message',
      new Error(`connect to ${URL_TEXT} failed`),
      'connect to http://[redacted]@proxy.test:3128 failed',
    ],
    [
      'the message of a tunnel',
      Object.assign(new Error(`Failed to establish tunnel to a.test:443 via ${URL_TEXT} HTTP/1.1 407`), {
        code: 'ERR_PROXY_TUNNEL',
      }),
      'via http://[redacted]@proxy.test:3128 HTTP/1.1 407',
    ],
    [
      'a cause',
      new TypeError('fetch failed', { cause: new Error(`no ${URL_TEXT}`) }),
      '//[redacted]@proxy.test',
    ],
    ['a URL with escaped slashes', new Error(URL_TEXT.replaceAll('/', '\\/')), '[redacted]@proxy.test'],
    ['a user name alone', new Error('no https://pa55@proxy.test'), 'no https://[redacted]@proxy.test'],
    ['a rejection that is not an error', URL_TEXT, '//[redacted]@proxy.test'],
  ])(
    'in %s of a failure of fetch → masked in the error, its causes and the log',
    async (_where, failure, kept) => {
      const lines: unknown[] = [];
      const log = (...args: unknown[]) => lines.push(args);
      const logger = { debug: log, info: log, warn: log, error: log };
      const { client } = makeClient(() => Promise.reject(failure), {
        logger,
        logLevel: 'debug',
        retry: { retries: 1 },
      });
      const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
      const shown = [error, ...lines].map(everything).join();
      expect(shown).toContain(kept);
      expect(shown).not.toMatch(/pa55|w0rd/);
    },
  );

  test('an API key that contains an `@`, in a URL → the whole key is masked', async () => {
    const apiKey = 'half-one@half-two';
    const failure = new Error(`no https://a.test?key=${apiKey}`);
    const { client } = makeClient(() => Promise.reject(failure), { apiKey, retry: false });
    const shown = everything(await catchRejection(client.couriers.list()));
    expect(shown).toContain('key=[redacted]');
    expect(shown).not.toContain('half-');
  });

  test('in the error of a hook → masked in the log', async () => {
    const lines: unknown[] = [];
    const log = (...args: unknown[]) => lines.push(args);
    const onDone = () => Promise.reject(new Error(`no ${URL_TEXT}`));
    const logger = { debug: log, info: log, warn: log, error: log };
    await makeClient(
      { body: { data: [] } },
      { logger, logLevel: 'warn', hooks: { onDone } },
    ).client.couriers.list();
    await settled();
    expect(lines).toEqual([[expect.stringContaining('no http://[redacted]@proxy.test:3128')]]);
  });

  test('in an error of the service → masked in the message', async () => {
    const errors = [{ code: 'validation_error', message: `webhookUrl ${URL_TEXT} is not valid` }];
    const { client } = makeClient({ status: 422, body: { errors, data: null } });
    const { message } = Object(await catchRejection(client.couriers.list()));
    expect(message).toContain('webhookUrl http://[redacted]@proxy.test:3128 is not valid');
  });

  test('in an error of the `apiKey` function → masked in the cause', async () => {
    const { client } = makeClient({}, { apiKey: () => Promise.reject(new Error(`no ${URL_TEXT}`)) });
    const error = await catchRejection(client.couriers.list());
    expect(error).toMatchObject({ cause: { message: 'no http://[redacted]@proxy.test:3128' } });
  });

  test.each(['https://a.test/x@y', 'mail a@b.test // or c@d', 'https://a.test:443/?mail=a@b.test', '//@x'])(
    '%j, which has no user name → unchanged',
    async (text) => {
      const { client } = makeClient(() => Promise.reject(new Error(text)), { retry: false });
      expect(await catchRejection(client.couriers.list())).toMatchObject({ cause: { message: text } });
    },
  );
});

test('a failure of fetch with the key across the end of the reason → masked before it is cut', async () => {
  for (let before = 200; before < 300; before += 1) {
    const { client } = makeClient(new TypeError(`${'x'.repeat(before)}${API_KEY}`), { retry: false });
    const error = await catchRejection(client.couriers.list());
    expect(Object(error).message).not.toContain(API_KEY.slice(0, 4));
  }
});

import { describe, expect, test, vi } from 'vitest';
import { TrackingClient, type TrackingClientOptions } from '../../../src/index.ts';
import { API_KEY, BASE_URL, catchRejection, networkFailure } from '../../support/make-client.ts';

const headers = new Headers();
const text = async () => '{"data":[]}';
const fail = (): never => {
  throw new Error('no headers here');
};
/** The parts are read more than once, because each answer serves two tests. */
const streamOf = (part: unknown) => ({
  getReader: () => ({ read: async () => ({ done: false, value: part }), cancel: async () => {} }),
});

/** What stubs of `fetch` return that are not complete, and how the message names it. */
const ANSWERS: readonly (readonly [answer: unknown, words: string])[] = [
  [undefined, 'undefined instead of a response'],
  ['{"data":[]}', 'a string of 11 characters instead of a response'],
  [{ data: [] }, 'an object without `status`'],
  [{ status: 200, text }, 'a response whose `headers` have no `get`'],
  [{ status: 200, headers: { 'content-type': 'x' }, text }, 'a response whose `headers` have no `get`'],
  [{ status: '200', headers, text }, 'a response whose `status` is a string of 3 characters'],
  [
    { status: 200, headers: new Map([['retry-after', ['5']]]), text },
    'a response whose header `retry-after` is an array of 1 item',
  ],
  [{ status: 200, headers: { get: fail }, text }, 'a response that cannot be read: no headers here'],
  [{ status: 200, headers, text: async () => ({ data: [] }) }, 'a response whose `text()` is an object'],
  [{ status: 200, headers, text: () => 200 }, 'a response whose `text()` is a number'],
  [{ status: 500, headers, text: () => undefined }, 'a response whose `text()` is undefined'],
  [
    { status: 200, headers, text: async () => Buffer.from('{"data":[]}') },
    'a response whose `text()` is an iterable object',
  ],
  [
    { status: 200, headers, body: streamOf('{"data":[]}') },
    'a body whose parts are not bytes: a string of 11 characters',
  ],
  [
    { status: 200, headers, json: async () => ({}) },
    'a response without a `text` function and without a stream',
  ],
];

const make = (options: TrackingClientOptions) =>
  new TrackingClient({
    baseUrl: BASE_URL,
    apiKey: API_KEY,
    rateLimit: false,
    logLevel: 'silent',
    ...options,
  });

describe('a `fetch` that answers with something other than a response', () => {
  test.each(ANSWERS)(
    'the option `fetch`, %o → one attempt, and the option is blamed',
    async (answer, words) => {
      const fetch = vi.fn(async () => answer);
      // A stub without types may return anything.
      const client = make({ fetch: fetch as unknown as NonNullable<TrackingClientOptions['fetch']> });
      expect(await catchRejection(client.couriers.list())).toMatchObject({
        name: 'ConnectionError',
        isPermanent: true,
        message: expect.stringContaining(
          `GET ${BASE_URL}/couriers got no response: the function of the option \`fetch\` returned ${words}`,
        ),
      });
      expect(fetch).toHaveBeenCalledOnce();
    },
  );

  test.each(ANSWERS)('the global `fetch`, %o → one attempt, and its mock is blamed', async (answer) => {
    const fetch = vi.fn(async () => answer);
    vi.stubGlobal('fetch', fetch);
    expect(await catchRejection(make({}).couriers.list())).toMatchObject({
      name: 'ConnectionError',
      isPermanent: true,
      message: expect.stringMatching(
        /got no response: the global `fetch` returned .*; let whatever replaces it return a Response$/,
      ),
    });
    expect(fetch).toHaveBeenCalledOnce();
  });

  test('any header that the client asks for, as a number → an error that names it', async () => {
    const asked = new Set<string>();
    const respond = (status: number, get: (name: string) => unknown) =>
      // A stub without types may have such headers.
      (async () => ({
        status,
        statusText: '',
        ok: true,
        headers: { get },
        body: null,
        text,
      })) as unknown as NonNullable<TrackingClientOptions['fetch']>;
    const note = (name: string) => void asked.add(name);
    for (const status of [200, 404, 429])
      await make({ fetch: respond(status, note), retry: false })
        .couriers.list()
        .catch(() => {});
    expect(asked.size).toBeGreaterThan(8);
    for (const each of asked) {
      const fetch = respond(200, (name) => (name === each ? 7 : null));
      expect(await catchRejection(make({ fetch }).couriers.list())).toMatchObject({
        isPermanent: true,
        message: expect.stringContaining(`returned a response whose header \`${each}\` is a number`),
      });
    }
  });

  test('one Response for all calls → the second call fails at once, and the message says why', async () => {
    const response = Response.json({ data: [] });
    const fetch = vi.fn(async () => response);
    const client = make({ fetch });
    expect(await client.couriers.list()).toEqual([]);
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      isPermanent: true,
      message: expect.stringContaining('whose body was read before; return a new response for each call'),
    });
    expect(fetch).toHaveBeenCalledTimes(2);
  });

  test.each([
    ['an Error', new Error('not mocked'), 'Error: not mocked'],
    ['a text', 'not mocked', 'a string of 10 characters'],
  ])(
    'a `text` function that throws %s → one attempt, and the message quotes it',
    async (_what, thrown, words) => {
      const answer = {
        status: 200,
        statusText: '',
        ok: true,
        headers,
        body: null,
        text: () => Promise.reject(thrown),
      };
      const fetch = vi.fn(async () => answer);
      expect(await catchRejection(make({ fetch }).couriers.list())).toMatchObject({
        isPermanent: true,
        message: expect.stringContaining(`returned a response whose \`text()\` failed: ${words}`),
      });
      expect(fetch).toHaveBeenCalledOnce();
    },
  );

  test('a stub whose answer is not a promise → used', async () => {
    const answer = { status: 200, statusText: '', ok: true, headers, body: null, text };
    // A stub without types may return the response itself.
    const fetch = (() => answer) as unknown as NonNullable<TrackingClientOptions['fetch']>;
    expect(await make({ fetch }).couriers.list()).toEqual([]);
  });

  test.each([
    ['a Map', new Map([['content-type', 'application/json']])],
    ['an object with `get` alone', { get: () => undefined }],
  ])('%s as `headers` → read, also by `withResponse` and in an error', async (_what, headers) => {
    const answer = { status: 200, statusText: 'OK', ok: true, headers, body: null, text };
    // A stub without types may have such headers.
    const respond = (status: number) =>
      (async () => ({ ...answer, status })) as unknown as NonNullable<TrackingClientOptions['fetch']>;
    expect(
      await make({ fetch: respond(200) })
        .couriers.list()
        .withResponse(),
    ).toMatchObject({ data: [] });
    expect(await catchRejection(make({ fetch: respond(404) }).couriers.list())).toMatchObject({
      status: 404,
    });
  });
});

describe('a global `fetch` that throws before it returns a promise', () => {
  test.each<[what: string, thrown: unknown, words: string]>([
    ['an Error', new Error('boom'), 'Error: boom'],
    ['a TypeError', new TypeError('fetch failed'), 'TypeError: fetch failed'],
    ['an error with a code of the network', networkFailure('ECONNRESET'), 'TypeError: fetch failed'],
    ['a text', 'boom', 'a string of 4 characters'],
    ['undefined', undefined, 'undefined'],
  ])('%s → one attempt, and its mock is blamed in the words of the error', async (_what, thrown, words) => {
    const fetch = vi.fn(() => {
      throw thrown;
    });
    vi.stubGlobal('fetch', fetch);
    const error = await catchRejection(make({}).couriers.list());
    expect(error).toMatchObject({
      name: 'ConnectionError',
      isPermanent: true,
      message:
        `GET ${BASE_URL}/couriers got no response: the global \`fetch\` threw ${words}; ` +
        'let whatever replaces it return a Response',
    });
    expect(fetch).toHaveBeenCalledOnce();
  });

  test('an Error → the error is in the chain of causes', async () => {
    vi.stubGlobal('fetch', () => {
      throw new RangeError('boom');
    });
    expect(await catchRejection(make({}).couriers.list())).toMatchObject({
      cause: { cause: { name: 'RangeError', message: 'boom' } },
    });
  });

  test('because the call was aborted → the reason of the signal', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    vi.stubGlobal('fetch', () => {
      controller.abort(reason);
      throw new Error('boom');
    });
    expect(await catchRejection(make({}).couriers.list({ signal: controller.signal }))).toBe(reason);
  });
});

describe('a runtime that lacks what a request needs', () => {
  test.each(['Headers', 'Request'])(
    'no `%s` → one attempt, nothing is sent, and the message says what is missing',
    async (name) => {
      const fetch = vi.fn(async () => Response.json({ data: [] }));
      const client = make({ fetch });
      vi.stubGlobal(name, undefined);
      expect(await catchRejection(client.tracking.search({ trackingNumber: 'LA680658838NL' }))).toMatchObject(
        {
          name: 'ConnectionError',
          isPermanent: true,
          neverSent: true,
          message: expect.stringContaining(
            ` got no response: the request could not be made: the global \`${name}\` is missing; `,
          ),
        },
      );
      expect(fetch).not.toHaveBeenCalled();
    },
  );

  test.each([undefined, null, {}])(
    'a global `fetch` that is %o → nothing is sent, and the message names the option',
    async (global) => {
      const requests: number[] = [];
      const client = make({ hooks: { onRequest: ({ attempt }) => void requests.push(attempt) } });
      vi.stubGlobal('fetch', global);
      expect(await catchRejection(client.couriers.list())).toMatchObject({
        name: 'ConnectionError',
        isPermanent: true,
        neverSent: true,
        attempts: 0,
        message:
          `GET ${BASE_URL}/couriers got no response: the request could not be made: ` +
          'this runtime has no global `fetch`; pass the option `fetch`',
      });
      expect(requests).toEqual([]);
    },
  );

  test('no global `fetch`, but the option `fetch` → the request is sent', async () => {
    const client = make({ fetch: async () => Response.json({ data: [] }) });
    vi.stubGlobal('fetch', undefined);
    expect(await client.couriers.list()).toEqual([]);
  });

  test('no global `fetch` when the client is created, and a mock later → the request is sent', async () => {
    vi.stubGlobal('fetch', undefined);
    const client = make({});
    vi.stubGlobal('fetch', async () => Response.json({ data: [] }));
    expect(await client.couriers.list()).toEqual([]);
  });
});

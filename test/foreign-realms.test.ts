import { createContext, runInContext } from 'node:vm';
import Bluebird from 'bluebird';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { MemoryDedupeStore, WebhookInbox } from '../src/webhooks/index.ts';
import { catchRejection, makeClient } from './support/make-client.ts';
import { settled } from './support/settled.ts';
import { settleInVirtualTime } from './support/virtual-time.ts';

const INPUT = { trackingNumber: 'LA680658838NL' };
const OK = { body: { data: { trackings: [] } } };
const OTHER_REALM = createContext({});

/** Makes a value in another realm, as code in jest or in a `vm` context does. */
const elsewhere = (code: string): unknown => runInContext(code, OTHER_REALM);

describe('a failure of `fetch` whose errors are of another realm', () => {
  const refuse = `Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' })`;

  test.each([
    ['a refused connection', `new TypeError('fetch failed', { cause: ${refuse} })`],
    ['a refused connection of a library', refuse],
    [
      'all addresses refused',
      `new TypeError('fetch failed', { cause: Object.assign(new AggregateError([${refuse}, ${refuse}]), { code: 'ECONNREFUSED' }) })`,
    ],
  ])('%s → never sent, and a paid call is retried', async (_what, code) => {
    const fail = () => Promise.reject(elsewhere(code));
    const { client, requests } = makeClient([fail, OK]);
    expect(await settleInVirtualTime(() => client.tracking.search(INPUT))).toEqual([]);
    expect(requests).toHaveLength(2);
    const failing = makeClient(fail, { retry: false });
    expect(await catchRejection(failing.client.tracking.search(INPUT))).toMatchObject({
      name: 'ConnectionError',
      neverSent: true,
      message: expect.stringMatching(/ got no response: (?:connect )?ECONNREFUSED$/),
      cause: { message: expect.any(String) },
    });
  });

  test('a reset connection → a message that does not blame the option `fetch`', async () => {
    const reset = `Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })`;
    const { client } = makeClient(() => Promise.reject(elsewhere(reset)), { retry: false });
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      isPermanent: false,
      message: expect.not.stringContaining('option'),
    });
  });

  test('a body that breaks off → an incomplete response with the reason', async () => {
    const pull = (stream: ReadableStreamDefaultController) => stream.error(elsewhere(`new Error('cut')`));
    const { client } = makeClient(() => new Response(new ReadableStream({ pull })), { retry: false });
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      message: expect.stringMatching(/ got an incomplete response: cut$/),
    });
  });
});

test('a hook whose promise of another realm rejects → a warning, and no unhandled rejection', async () => {
  const warn = vi.fn();
  const logger = { debug() {}, info() {}, warn, error() {} };
  const onStart = () => elsewhere(`Promise.reject(new Error('no metrics'))`);
  const { client } = makeClient(OK, {
    logger,
    logLevel: 'warn',
    hooks: { onStart: () => void 0, onDone: onStart as () => void },
  });
  await client.tracking.search(INPUT);
  // An unhandled rejection would fail this file.
  await settled();
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    expect.stringContaining('Your callback `onDone` threw an error, which the client ignores: no metrics'),
  );
});

test('a date of another realm as `receivedAt` → accepted', async () => {
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
  // Sound: a date of another realm has the methods of a date.
  const receivedAt = elsewhere('new Date(1_700_000_000_000)') as Date;
  const body = { trackerId: 't', events: [{ eventId: 'e' }] };
  expect(await inbox.process(body, () => {}, { receivedAt })).toMatchObject({ outcome: 'done' });
});

test.each(['new Uint8Array(bytes)', 'new Uint8Array(bytes).buffer'])(
  'a webhook body of another realm, %s → parsed',
  async (code) => {
    const bytes = [...Buffer.from('{"trackerId":"t","events":[{"eventId":"e"}]}')];
    const body: unknown = runInContext(code, createContext({ bytes }));
    expect(await new WebhookInbox({ store: new MemoryDedupeStore() }).process(body, () => {})).toMatchObject({
      outcome: 'done',
      handled: 1,
    });
  },
);

describe('an error of any shape', () => {
  const reset = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  const define = (field: string, descriptor: PropertyDescriptor) =>
    Object.defineProperty(reset(), field, descriptor);
  const fail = () => {
    throw new Error('a getter that throws');
  };

  const revoke = (target: object) => {
    const { proxy, revoke: end } = Proxy.revocable(target, {});
    end();
    return proxy;
  };

  test.each<[what: string, makeError: () => unknown]>([
    ['a revoked proxy', () => revoke({})],
    ['a revoked proxy of an error', () => revoke(reset())],
    ['a revoked proxy as cause', () => Object.assign(reset(), { cause: revoke({}) })],
    ['a revoked proxy as errors', () => Object.assign(reset(), { errors: revoke([]) })],
    ['a tag that throws', () => Object.defineProperty({}, Symbol.toStringTag, { get: fail })],
    ['stack: null', () => define('stack', { value: null })],
    ['a stack of call sites', () => define('stack', { value: [{}] })],
    ['message: {}', () => define('message', { value: {} })],
    ['no name', () => define('name', { value: undefined })],
    ['a symbol as name', () => define('name', { value: Symbol('name') })],
    ['a stack that cannot be read', () => define('stack', { get: fail })],
    ['a message that cannot be read', () => define('message', { get: fail })],
    ['a cause that cannot be read', () => define('cause', { get: fail })],
    ['a frozen error', () => Object.freeze(reset())],
    ['a cause that is its own cause', () => Object.assign(reset(), { cause: 'self' }) && ring()],
    ['errors that are no list', () => Object.assign(reset(), { errors: { length: 3 } })],
    [
      'a proxy that answers nothing',
      () => new Proxy(reset(), { get: fail, has: fail, getOwnPropertyDescriptor: fail }),
    ],
  ])('%s → a ConnectionError of the call, with a cause', async (_what, makeError) => {
    const { client, requests } = makeClient(() => Promise.reject(makeError()), { retry: { retries: 1 } });
    const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
    expect(error).toMatchObject({ name: 'ConnectionError', callId: expect.any(String) });
    expect(Object(error).cause).toBeDefined();
    expect(requests.length).toBe(Object(error).isPermanent ? 1 : 2);
  });

  function ring(): Error {
    const error = reset();
    error.cause = error;
    return error;
  }

  describe('while an app has set `Error.prepareStackTrace`', () => {
    const { prepareStackTrace } = Error;
    afterEach(() => {
      Error.prepareStackTrace = prepareStackTrace;
    });

    test('to return call sites, a failure of the network → retried, and an error whose stack is a text with the line of the call', async () => {
      Error.prepareStackTrace = (_error, sites) => sites;
      const { client, requests } = makeClient(() => Promise.reject(reset()), { retry: { retries: 1 } });
      const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
      const stack: unknown = Object(error).stack;
      Error.prepareStackTrace = prepareStackTrace;
      expect(error).toMatchObject({ name: 'ConnectionError' });
      expect(requests).toHaveLength(2);
      expect(stack).toMatch(/^ConnectionError: .*\n {4}at (?:.*\n)*.*foreign-realms\.test\.ts:\d+/);
    });

    const unreadable = { [Symbol.toPrimitive]: fail };
    test.each<[what: string, prepare: () => unknown]>([
      ['throw', fail],
      ['return undefined', () => undefined],
      ['return frames that cannot be read', () => [unreadable]],
    ])('to %s, a failure of the network → retried, and a ConnectionError', async (_what, prepare) => {
      Error.prepareStackTrace = prepare;
      const { client, requests } = makeClient(() => Promise.reject(reset()), { retry: { retries: 1 } });
      const error = await settleInVirtualTime(() => catchRejection(client.couriers.list()));
      Error.prepareStackTrace = prepareStackTrace;
      expect(error).toMatchObject({
        name: 'ConnectionError',
        message: expect.stringContaining('read ECONNRESET'),
        stack: expect.stringMatching(/^ConnectionError: GET /),
        cause: { code: 'ECONNRESET' },
      });
      expect(requests).toHaveLength(2);
    });
  });
});

describe('another class as the global `Promise`', () => {
  test.each<[name: string, GlobalPromise: unknown]>([
    ['Bluebird', Bluebird],
    ['a subclass', class Traced<T> extends Promise<T> {}],
  ])('%s → calls, retries, timeouts and `withResponse` work', async (_name, GlobalPromise) => {
    const script = [() => Promise.reject(new TypeError('fetch failed')), { body: { data: [] } }];
    const { client, requests } = makeClient(script, { retry: { maxBackoffMs: 1 } });
    vi.stubGlobal('Promise', GlobalPromise);
    const { data, attempts } = await client.couriers.list().withResponse();
    expect({ data, attempts, sent: requests.length }).toEqual({ data: [], attempts: 2, sent: 2 });
    const silent = makeClient(() => new Promise<Response>(() => {}), { retry: false });
    expect(await catchRejection(silent.client.couriers.list({ timeoutMs: 5 }))).toMatchObject({
      name: 'TimeoutError',
    });
    const seen: unknown[] = [];
    for await (const { status } of makeClient({ status: 500 }).client.trackers.createMany([INPUT]))
      seen.push(status);
    expect(seen).toEqual(['unknown']);
  });
});

import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import type { WebhookHandlerOptions } from '../../src/webhooks/index.ts';
import { MemoryDedupeStore, WebhookAuthenticationError } from '../../src/webhooks/index.ts';
import { makeHandler, post, SECRET } from './make-handler.ts';
import { failingOn, makeInbox, payload, ScriptedStore, tracking } from './support.ts';

describe('methods', () => {
  test('HEAD without authentication → 200, empty', async () => {
    const response = await makeHandler()(new Request('https://app.example.test/', { method: 'HEAD' }));
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  test.each(['GET', 'PUT', 'DELETE', 'OPTIONS'])('%s → 405 with Allow', async (method) => {
    const response = await makeHandler()(new Request('https://app.example.test/', { method }));
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'HEAD, POST']);
  });
});

describe('authentication', () => {
  test.each([
    ['missing', undefined],
    ['wrong', 'Bearer whsec-2'],
    ['of another length', 'Bearer whsec-12'],
    ['of another scheme', `Basic ${SECRET}`],
  ])('bearer %s → 401, nothing handled', async (_title, authorization) => {
    const onEvent = vi.fn();
    const response = await makeHandler({ onEvent })(post(payload(tracking('t1', 'e1')), { authorization }));
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(onEvent).not.toHaveBeenCalled();
  });

  test.each([
    ['gives the secret', 200, () => SECRET],
    ['gives several later', 200, async () => ['old', SECRET]],
    ['gives another one', 401, async () => 'whsec-2'],
    ['gives none', 500, () => ''],
    ['rejects', 500, () => Promise.reject(new Error('no vault'))],
  ])('a `secret` function that %s → %i', async (_title, status, secret) => {
    const onRefused = vi.fn();
    const handler = makeHandler({ secret, onRefused });
    expect((await handler(post(payload(tracking('t1', 'e1'))))).status).toBe(status);
    expect(onRefused).toHaveBeenCalledTimes(status === 200 ? 0 : 1);
  });

  test('a `secret` function that rejects → told to onRefused, with the reason', async () => {
    const cause = new Error('no vault');
    const refusals: unknown[] = [];
    const onRefused = (error: unknown) => refusals.push(error);
    await makeHandler({ secret: () => Promise.reject(cause), onRefused })(post({}));
    expect(refusals).toMatchObject([
      { name: 'ConfigurationError', message: expect.stringContaining('`secret` function'), cause },
    ]);
  });

  test('a `secret` function → asked for each webhook, and not before the first', async () => {
    const secret = vi.fn(() => SECRET);
    const handler = makeHandler({ secret });
    expect(secret).not.toHaveBeenCalled();
    await handler(post(payload(tracking('t1', 'e1'))));
    await handler(post(payload(tracking('t1', 'e2'))));
    expect(secret).toHaveBeenCalledTimes(2);
  });

  test('bearer wrong → the body is not read', async () => {
    const request = post(payload(tracking('t1', 'e1')), { authorization: 'Bearer wrong' });
    await makeHandler()(request);
    expect(request.bodyUsed).toBe(false);
  });

  test('bearer wrong → told to onRefused as WebhookAuthenticationError', async () => {
    const refusals: unknown[] = [];
    const onRefused = (error: unknown) => refusals.push(error);
    await makeHandler({ onRefused })(post({}, { authorization: 'Bearer wrong' }));
    expect(refusals).toEqual([expect.any(WebhookAuthenticationError)]);
  });

  test('lower-case scheme → 200', async () => {
    const request = post(payload(tracking('t1', 'e1')), { authorization: `bearer ${SECRET}` });
    expect((await makeHandler()(request)).status).toBe(200);
  });

  test.each(['old', 'new'])('secrets old and new, sent %s → 200', async (secret) => {
    const request = post(payload(tracking('t1', 'e1')), { authorization: `Bearer ${secret}` });
    expect((await makeHandler({ secret: ['old', 'new'] })(request)).status).toBe(200);
  });

  test('secret: false → 200 without a bearer', async () => {
    const request = post(payload(tracking('t1', 'e1')), { authorization: undefined });
    expect((await makeHandler({ secret: false })(request)).status).toBe(200);
  });
});

describe('options', () => {
  test.each<[string, Partial<WebhookHandlerOptions>, RegExp]>([
    ['no secret', { secret: undefined }, /`secret`.* or false, got undefined/],
    ['an empty secret', { secret: '' }, /`secret`/],
    ['an empty list of secrets', { secret: [] }, /`secret`/],
    ['maxBodyBytes 0', { maxBodyBytes: 0 }, /`maxBodyBytes`/],
    ['deadlineMs NaN', { deadlineMs: Number.NaN }, /`deadlineMs`/],
    // The wrong name on purpose: JavaScript callers have no compiler.
    ['a misspelt option', { ['onother' as never]: () => {} }, /got `onother`/],
    ['onEvent and onEvents', { onEvents: () => {} }, /got both/],
    ['inbox and store', { inbox: makeInbox(), store: new MemoryDedupeStore() }, /`store`.*got both/],
    ['inbox and leaseMs', { inbox: makeInbox(), leaseMs: 5 }, /`leaseMs`.*got both/],
    ['a lease of 0', { leaseMs: 0 }, /`leaseMs`/],
    ['a store without commit', { store: { claim() {}, release() {} } as never }, /`commit`/],
  ])('%s → ConfigurationError at construction', (_title, options, message) => {
    expect(() => makeHandler(options)).toThrow(ConfigurationError);
    expect(() => makeHandler(options)).toThrow(message);
  });

  // The wrong types on purpose: JavaScript callers have no compiler.
  test.each([
    [
      'a store as `inbox`',
      { inbox: new MemoryDedupeStore() as never },
      'Expected `inbox` to be a WebhookInbox or a TransactionalInbox, got a store: give it as `store`',
    ],
    [
      'an inbox as `store`',
      { store: makeInbox() as never },
      'Expected `store` to be a DedupeStore, got an inbox: give it as `inbox`',
    ],
    [
      'a Map as `store`',
      { store: new Map() as never },
      'Expected `store` to be a DedupeStore such as `new MemoryDedupeStore()`, with `claim`, `commit` and `release`, got an object',
    ],
  ])('%s → ConfigurationError that says what to write', (_title, options, message) => {
    expect(() => makeHandler(options)).toThrow(new ConfigurationError(message));
  });

  test.each([null, {}, 'inbox'])('inbox %j → ConfigurationError', (inbox) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    expect(() => makeHandler({ inbox: inbox as never })).toThrow(/`inbox`/);
  });
});

test('no callback at all → ConfigurationError, for every event would be answered with 200 and lost', () => {
  expect(() => makeHandler({ onEvent: undefined })).toThrow(
    new ConfigurationError('Expected `onEvent` or another callback for webhooks, got none'),
  );
});

describe('store', () => {
  const body = payload(tracking('t1', 'e1'));

  test('a store and options of an inbox → the handler makes the inbox of them', async () => {
    const store = new ScriptedStore();
    const onDeadLetter = vi.fn();
    const handler = makeHandler({
      store,
      maxAttempts: 2,
      onDeadLetter,
      onError: () => {},
      onEvent: failingOn('e1').handler,
    });
    const statuses = [(await handler(post(body))).status, (await handler(post(body))).status];
    expect(statuses).toEqual([500, 200]);
    expect(onDeadLetter).toHaveBeenCalledOnce();
    expect(store.calls.map(({ operation }) => operation)).toEqual(['claim', 'release', 'claim', 'commit']);
  });

  test('neither store nor inbox → events are remembered in memory, and handled once', async () => {
    const onEvent = vi.fn();
    const handler = makeHandler({ onEvent });
    await handler(post(body));
    await handler(post(body));
    expect(onEvent).toHaveBeenCalledOnce();
  });

  test.each([
    ['production', 1],
    ['development', 0],
  ])('neither store nor inbox in %s → %d warnings', (environment, count) => {
    vi.stubEnv('NODE_ENV', environment);
    onTestFinished(() => void vi.unstubAllEnvs());
    const logger = { debug() {}, info() {}, warn: vi.fn(), error() {} };
    makeHandler({ logger });
    makeHandler({ logger, store: new MemoryDedupeStore() });
    expect(logger.warn).toHaveBeenCalledTimes(count);
  });
});

import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import type { WebhookHandlerOptions } from '../../src/webhooks/index.ts';
import { MemoryDedupeStore, WebhookAuthenticationError } from '../../src/webhooks/index.ts';
import { makeHandler, post, SECRET, webhook } from './make-handler.ts';
import { E1, failingOn, makeInbox, ScriptedStore } from './support.ts';

/** The status for a webhook with this `Authorization` header. */
async function sendBearer(options: Partial<WebhookHandlerOptions>, authorization: string | undefined) {
  const onRefused = vi.fn<(error: unknown) => void>();
  const request = post(E1, { authorization });
  const response = await makeHandler({ onRefused, ...options })(request);
  return { response, request, status: response.status, error: onRefused.mock.lastCall?.[0] };
}

const SPACE = '`secret` begins or ends with white space; remove it';
const QUOTE = '`secret` begins or ends with a quote; remove the quotes';
const SCHEME = '`secret` begins with `Bearer` or `Authorization:`; pass only the secret';
const MISSING = '`secret` is missing; pass the webhook secret, or `false` to accept webhooks from anyone';

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
    ['the secret', `Bearer ${SECRET}`],
    ['a lower-case scheme', `bearer ${SECRET}`],
    ['more spaces and a tab', `Bearer   ${SECRET} \t`],
  ])('%s → 200', async (_title, authorization) => {
    expect((await sendBearer({}, authorization)).status).toBe(200);
  });

  test.each([
    ['no header', undefined],
    ['an empty token', 'Bearer '],
    ['the bare secret', SECRET],
    ['a bearer after another scheme', `Basic bearer ${SECRET}`],
    ['a wrong secret of the same length', 'Bearer whsec-2'],
    ['a longer secret', `Bearer ${SECRET}2`],
    ['two secrets in one header', `Bearer ${SECRET}, Bearer ${SECRET}`],
    ['no space', `Bearer${SECRET}`],
  ])('%s → 401, nothing read or handled, onRefused is called', async (_title, authorization) => {
    const onEvent = vi.fn();
    const { response, request, error } = await sendBearer({ onEvent }, authorization);
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(error).toBeInstanceOf(WebhookAuthenticationError);
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/whsec-/);
    expect(request.bodyUsed).toBe(false);
    expect(onEvent).not.toHaveBeenCalled();
  });

  test.each([
    ['old', 200],
    ['new', 200],
    ['oldnew', 401],
  ])('a list of secrets, and the header holds %s → %i', async (secret, status) => {
    expect((await sendBearer({ secret: ['old', 'new'] }, `Bearer ${secret}`)).status).toBe(status);
  });

  // The UTF-8 of the last two ends with a byte that reads as a no-break space.
  test.each(['sécret', 'voilà', 'pass😠'])(
    'the secret %s, sent as the bytes of its UTF-8 → 200',
    async (secret) => {
      const authorization = `Bearer ${Buffer.from(secret).toString('latin1')}`;
      // A request that keeps the end of its header, which `Headers` would trim.
      const request = Object.defineProperty(post(E1), 'headers', {
        value: { get: (name: string) => (name === 'authorization' ? authorization : null) },
      });
      expect((await makeHandler({ secret })(request)).status).toBe(200);
    },
  );

  test('secret: false → 200 without a bearer', async () => {
    expect((await sendBearer({ secret: false }, undefined)).status).toBe(200);
  });

  test.each([
    ['returns the secret', 200, () => SECRET],
    ['resolves to several', 200, async () => ['old', SECRET]],
    ['returns another one', 401, async () => 'whsec-2'],
    ['returns none', 500, () => ''],
    ['returns undefined', 401, () => undefined],
    ['resolves to null', 401, async () => null],
    ['returns an empty list', 401, () => []],
    ['returns an account without a secret', 401, () => ({ secret: undefined, account: 'acme' })],
    ['returns the secret of an account', 200, () => ({ secret: SECRET, account: 'acme' })],
    ['resolves to secrets without an account', 200, async () => ({ secret: ['old', SECRET] })],
    ['returns another secret of an account', 401, () => ({ secret: 'whsec-2', account: 'acme' })],
    ['rejects', 500, () => Promise.reject(new Error('no vault'))],
  ])('a `secret` function that %s → %i', async (_title, status, secret) => {
    expect((await sendBearer({ secret }, `Bearer ${SECRET}`)).status).toBe(status);
  });

  test('a `secret` function → called for each webhook, with URL, method and headers of the request', async () => {
    const secret = vi.fn((_request: unknown) => SECRET);
    const handler = makeHandler({ secret });
    expect(secret).not.toHaveBeenCalled();
    await handler(webhook('e1'));
    await handler(webhook('e2'));
    const request = {
      url: 'https://app.example.test/webhooks',
      method: 'POST',
      headers: expect.any(Headers),
    };
    expect(secret.mock.calls).toEqual([[request], [request]]);
  });

  test('a `secret` function that returns nothing → nothing read or handled, and the error says so', async () => {
    const onEvent = vi.fn();
    const { request, error } = await sendBearer({ secret: () => undefined, onEvent }, `Bearer ${SECRET}`);
    expect(error).toMatchObject({
      message: 'The `secret` function returned no secret for the request of a webhook',
    });
    expect([request.bodyUsed, onEvent.mock.calls]).toEqual([false, []]);
  });

  test.each([
    ['empty', '', MISSING],
    ['spaces', '  ', SPACE],
    ['a line break at its end', 's3cret\n', SPACE],
    ['double quotes', '"s3cret"', QUOTE],
    ['single quotes', "'s3cret'", QUOTE],
    ['a quote at its end', 's3cret`', QUOTE],
    ['typographic quotes', '“s3cret”', QUOTE],
    ['a scheme', 'Bearer s3cret', SCHEME],
    ['a scheme in lower case with a colon', 'bearer: s3cret', SCHEME],
    ['a name of a header, before a space and a colon', 'authorization : s3cret', SCHEME],
    ['a whole header', 'Authorization: Bearer s3cret', SCHEME],
    [
      'a line break inside',
      's3cret\nother',
      '`secret` contains a line break or another control character; remove it',
    ],
    ['a list with a quoted one', ['s3cret', '"s3cret"'], QUOTE],
    ['undefined', undefined, MISSING],
    ['a number', 5, 'Expected `secret` to be a string, a list of strings, a function or false, got a number'],
    ['an empty list', [], '`secret` is an empty list; pass at least one secret'],
    ['a list with an empty one', ['s3cret', ''], MISSING],
  ])('the option `secret`: %s → ConfigurationError that does not show it', (_title, secret, message) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    const make = () => makeHandler({ secret: secret as string });
    expect(make).toThrow(new ConfigurationError(message));
  });
});

test.each([
  's3"cret',
  "it's",
  's-bearer:3cret',
  'x authorization: s3cret',
  'authorization-s3:cret',
  'bearers3cret',
])('a secret that only contains a quote or a part of a header: %s → accepted', async (secret) => {
  const request = webhook('e1');
  request.headers.set('authorization', `Bearer ${secret}`);
  expect((await makeHandler({ secret })(request)).status).toBe(200);
});

const SECRETS = 'return the webhook secret, a list of secrets, or `{ secret, account }`';

test.each([
  ['false', false, `a boolean; ${SECRETS}`],
  ['an empty string', '', `an empty string; ${SECRETS}`],
  ['a number', 5, `a number; ${SECRETS}`],
  ['a list with an empty string', ['s3cret', ''], `a list with an empty string; ${SECRETS}`],
  ['an object without a secret', { account: 'acme' }, `an object without the field \`secret\`; ${SECRETS}`],
  ['false for an account', { secret: false, account: 'acme' }, `a boolean; ${SECRETS}`],
  [
    'an empty account',
    { secret: SECRET, account: '' },
    'an empty string as `account`; return a text that is not empty',
  ],
  [
    'a number as account',
    { secret: SECRET, account: 7 },
    'a number as `account`; return a text that is not empty',
  ],
  ['quotes', '"s3cret"', 'a secret that begins or ends with a quote; remove the quotes'],
  [
    'a scheme',
    ['Bearer s3cret'],
    'a secret that begins with `Bearer` or `Authorization:`; pass only the secret',
  ],
])(
  'a function as `secret` that returns %s → 500, and the log says what it returned, but not the secret',
  async (_, returned, got) => {
    const error = vi.fn();
    const logger = { debug() {}, info() {}, warn() {}, error };
    // The wrong type on purpose: JavaScript callers have no compiler.
    const handler = makeHandler({ secret: () => returned as string, logger });
    expect((await handler(webhook('e1'))).status).toBe(500);
    expect(error).toHaveBeenCalledWith(
      `[tracking-client] Responded to a webhook with 500: The \`secret\` function returned ${got}`,
      expect.anything(),
    );
    expect(inspect(error.mock.calls, { depth: 9 })).not.toContain('s3cret');
  },
);

describe('options', () => {
  // The wrong names and types on purpose: JavaScript callers have no compiler.
  test.each<[object, string | RegExp]>([
    [{ maxBodyBytes: 0 }, /`maxBodyBytes`/],
    [
      { metrics: () => {} },
      /Expected `metrics` to be the object that `webhookMetrics\(\)` returns, got a function/,
    ],
    [{ deadlineMs: Number.NaN }, /`deadlineMs`/],
    [{ onother: () => {} }, /^Unknown option `onother`; known options: onEvent, /],
    // The response would be 200, and every event lost.
    [{ onEvent: undefined }, 'No webhook callback is set; pass at least one, such as `onEvent`'],
    [
      { inbox: makeInbox(), leaseMs: 5 },
      /^`leaseMs` is an option of the inbox; pass it to `new WebhookInbox`/,
    ],
    [
      { inbox: makeInbox(), store: new MemoryDedupeStore() },
      /^`store` is an option of the inbox; pass it to/,
    ],
    [{ inbox: new MemoryDedupeStore() }, /`inbox` to be a WebhookInbox/],
    [
      { store: new Map() },
      /`store` to be a DedupeStore such as .*, with `claim`, .*, got an iterable object/,
    ],
    [{ inbox: 'inbox' }, /`inbox`.*, got a string/],
  ])('%o → ConfigurationError that says what to write', (options, message) => {
    const make = () => makeHandler(options as never);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(message);
  });
});

describe('store', () => {
  test('a store and options of an inbox → the handler creates its inbox with them', async () => {
    const store = new ScriptedStore();
    const onDeadLetter = vi.fn();
    const onEvent = failingOn('e1').handler;
    const handler = makeHandler({ store, maxAttempts: 2, onDeadLetter, onError: () => {}, onEvent });
    const statuses = [(await handler(webhook('e1'))).status, (await handler(webhook('e1'))).status];
    expect(statuses).toEqual([500, 200]);
    expect(onDeadLetter).toHaveBeenCalledOnce();
    expect(store.operations).toEqual(['claim', 'release', 'claim', 'commit']);
  });

  test.each([
    ['production', 1],
    ['development', 0],
  ])('neither store nor inbox in %s → number of warnings: %d', (environment, count) => {
    vi.stubEnv('NODE_ENV', environment);
    const logger = { debug() {}, info() {}, warn: vi.fn(), error() {} };
    makeHandler({ logger });
    makeHandler({ logger, store: new MemoryDedupeStore() });
    expect(logger.warn).toHaveBeenCalledTimes(count);
  });
});

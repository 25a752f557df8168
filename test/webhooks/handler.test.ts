import { describe, expect, test, vi } from 'vitest';
import type { WebhookHandlerOptions } from '../../src/webhooks/index.ts';
import { ConfigurationError, WebhookAuthenticationError } from '../../src/webhooks/index.ts';
import { makeHandler, post, SECRET } from './make-handler.ts';
import { payload, tracking } from './support.ts';

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
    const handler = vi.fn();
    const response = await makeHandler({ handler })(post(payload(tracking('t1', 'e1')), { authorization }));
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(handler).not.toHaveBeenCalled();
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

  test('allowUnauthenticated and no secret → 200 without a bearer', async () => {
    const handler = makeHandler({ secret: undefined, allowUnauthenticated: true });
    const request = post(payload(tracking('t1', 'e1')), { authorization: undefined });
    expect((await handler(request)).status).toBe(200);
  });

  test('allowUnauthenticated and a secret → the secret still counts', async () => {
    const handler = makeHandler({ allowUnauthenticated: true });
    expect((await handler(post({}, { authorization: undefined }))).status).toBe(401);
  });
});

describe('options', () => {
  test.each<[string, Partial<WebhookHandlerOptions>, RegExp]>([
    ['no secret', { secret: undefined }, /`secret`.*`allowUnauthenticated: true`/],
    ['an empty secret', { secret: '' }, /`secret`/],
    ['an empty list of secrets', { secret: [] }, /`secret`/],
    ['an empty secret and allowUnauthenticated', { secret: '', allowUnauthenticated: true }, /`secret`/],
    ['maxBodyBytes 0', { maxBodyBytes: 0 }, /`maxBodyBytes`/],
    ['deadlineMs NaN', { deadlineMs: Number.NaN }, /`deadlineMs`/],
    // The wrong name on purpose: JavaScript callers have no compiler.
    ['a misspelt option', { ['onsnapshot' as never]: () => {} }, /`onSnapshot`/],
    ['handler and onDelivery', { onDelivery: () => {} }, /got both/],
  ])('%s → ConfigurationError at construction', (_title, options, message) => {
    expect(() => makeHandler(options)).toThrow(ConfigurationError);
    expect(() => makeHandler(options)).toThrow(message);
  });

  test.each([undefined, {}, 'inbox'])('inbox %j → ConfigurationError', (inbox) => {
    // The wrong type on purpose: JavaScript callers have no compiler.
    expect(() => makeHandler({ inbox: inbox as never })).toThrow(/`inbox`/);
  });
});

test('no callback at all → ConfigurationError, for every event would be answered with 200 and lost', () => {
  expect(() => makeHandler({ handler: undefined })).toThrow(
    new ConfigurationError('Expected a `handler` or another callback for webhooks, got none'),
  );
});

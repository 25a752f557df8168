import { inspect } from 'node:util';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { WebhookHandlerOptions } from '../../../src/webhooks/index.ts';
import { makeHandler, post, webhook } from '../make-handler.ts';
import { E1, makeInbox, payload, proofOfDelivery, ScriptedStore, tracking } from '../support.ts';

beforeEach(() => {
  vi.useFakeTimers();
  for (const method of ['warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => {});
});
const failing = () => Promise.reject(new Error('no database'));
const throwing = () => {
  throw new Error('no metrics');
};

describe('responses', () => {
  test.each<[string, Pick<WebhookHandlerOptions, 'onEvent'>, object, number, string]>([
    ['everything handled', {}, E1, 200, 'done'],
    ['no valid item', {}, { hello: 'world' }, 422, 'rejected'],
    ['an invalid item beside a valid one', {}, payload({}, tracking('t1', 'e1')), 422, 'rejected'],
    ['a callback that rejects', { onEvent: failing }, E1, 500, 'failed'],
    ['a callback that rejects without a reason', { onEvent: () => Promise.reject() }, E1, 500, 'failed'],
  ])('%s → $3 $4, without Retry-After', async (_title, options, body, status, outcome) => {
    const response = await makeHandler({ onError: () => {}, ...options })(post(body));
    expect([response.status, await response.json()]).toEqual([status, { success: status === 200, outcome }]);
    expect(response.headers.has('retry-after')).toBe(false);
  });
});

test('a webhook with items for every callback → each callback and onReport are called', async () => {
  const [onEvents, onProofOfDelivery, onOther, onReport] = [vi.fn(), vi.fn(), vi.fn(), vi.fn()];
  const handler = makeHandler({ onEvent: undefined, onEvents, onProofOfDelivery, onOther, onReport });
  await handler(post(payload(tracking('t1', 'e1'), proofOfDelivery('t1'), tracking('t2'))));
  expect(onEvents).toHaveBeenCalledOnce();
  expect(onProofOfDelivery).toHaveBeenCalledOnce();
  expect(onOther).toHaveBeenCalledOnce();
  expect(onReport.mock.calls).toMatchObject([[{ outcome: 'done', handled: 2, others: 1 }]]);
});

test.each([
  ['an event held by another receiver → 503 with its lease in Retry-After', () => {}, 503, '42'],
  ['an event held by another receiver, another fails → 500, no Retry-After', failing, 500, null],
])('%s', async (_title, onEvent, status, retryAfter) => {
  const store = new ScriptedStore();
  await store.lease('e1', 42_000);
  const inbox = makeInbox({ store, busyTimeoutMs: 0 });
  const request = post(payload(tracking('t1', 'e1'), tracking('t2', 'e2')));
  const response = await makeHandler({ inbox, onEvent })(request);
  expect([response.status, response.headers.get('retry-after')]).toEqual([status, retryAfter]);
});

test.each<[string, () => unknown]>([
  ['fails', failing],
  ['does not respond', () => new Promise(() => {})],
])('a store that %s → 503 with Retry-After within 5 s, and no callback', async (_title, effect) => {
  const store = new ScriptedStore();
  store.before = effect;
  const [onEvent, onResponse] = [vi.fn(), vi.fn()];
  const twice = post(payload(tracking('t1', 'e1'), tracking('t2', 'e2')));
  void makeHandler({ store, onEvent })(twice).then(onResponse);
  await vi.advanceTimersByTimeAsync(5_000);
  const [response] = onResponse.mock.lastCall ?? [];
  expect([response?.status, response?.headers.get('retry-after')]).toEqual([503, '30']);
  expect(onEvent).not.toHaveBeenCalled();
});

test.each([
  ['throw', throwing],
  ['reject later', failing],
])('observers that %s → the responses are the same, and the process lives', async (_title, observe) => {
  const metrics = { recordReport: observe, recordRefusal: observe };
  const handler = makeHandler({ onReport: observe, onRefused: observe, metrics });
  expect((await handler(webhook('e1'))).status).toBe(200);
  expect((await handler(post(E1, { authorization: 'Bearer wrong' }))).status).toBe(401);
});

test.each([
  ['one event', E1, 'for the event with the key "tracking/events:t1:e1": no database'],
  ['two events', payload(tracking('t1', 'e1', 'e2')), 'A webhook callback failed: no database'],
  ['a proof', payload(proofOfDelivery('t1')), 'for the proof of delivery with the key "t1:'],
])('a callback that fails for %s → one line on console.error', async (_title, body, words) => {
  await makeHandler({ onEvent: undefined, onEvents: failing, onProofOfDelivery: failing })(post(body));
  expect(console.error).toHaveBeenCalledOnce();
  const [line] = vi.mocked(console.error).mock.calls[0] ?? [];
  expect(line).toMatch(/^\[tracking-client\] A webhook callback failed(: | for the )/);
  expect(line).toContain(words);
});

describe('no onRefused', () => {
  test('a `secret` function that throws → 500, with one line that gives the reason', async () => {
    expect((await makeHandler({ secret: failing })(webhook('e1'))).status).toBe(500);
    expect(console.error).toHaveBeenCalledExactlyOnceWith(
      '[tracking-client] Responded to a webhook with 500: The `secret` function threw an error, so the webhook could not be checked: no database',
      expect.objectContaining({ name: 'ConfigurationError' }),
    );
  });

  test.each<[string, () => unknown]>([
    ['its fields', () => Object.assign(new Error('no vault'), { config: { token: 'hvs.TOKEN' } })],
    [
      'the fields of its cause',
      () =>
        new Error('no vault', {
          cause: Object.assign(new Error('403'), { request: { token: 'hvs.TOKEN' } }),
        }),
    ],
    [
      'the errors of an AggregateError',
      () => Object.assign(new AggregateError([{ token: 'hvs.TOKEN' }], 'no vault')),
    ],
    ['a value that is not an error', () => ({ token: 'hvs.TOKEN' })],
  ])(
    'a `secret` function that throws, with a token in %s → the token is in no log line and no error',
    async (_title, build) => {
      const onRefused = vi.fn();
      const secret = () => Promise.reject(build());
      await makeHandler({ secret })(webhook('e1'));
      await makeHandler({ secret, onRefused })(webhook('e1'));
      expect(console.error).toHaveBeenCalledOnce();
      expect(onRefused).toHaveBeenCalledOnce();
      const [error] = onRefused.mock.calls[0] ?? [];
      expect(error).toMatchObject({ name: 'ConfigurationError', option: 'secret', rule: 'threw an error' });
      const printed = inspect([vi.mocked(console.error).mock.calls, error], { depth: 20, showHidden: true });
      expect(printed).toContain('The `secret` function threw an error');
      expect(printed).not.toContain('hvs.TOKEN');
    },
  );

  test('an inbox that rejects → 500, with one line on console.error', async () => {
    const broken = new TypeError('out of order');
    const handler = makeHandler({ inbox: { process: () => Promise.reject(broken) } });
    expect((await handler(webhook('e1'))).status).toBe(500);
    expect(console.error).toHaveBeenCalledExactlyOnceWith(
      '[tracking-client] Responded to a webhook with 500: out of order',
      broken,
    );
  });

  test.each<[string, Request, string]>([
    [
      'a wrong bearer',
      post(E1, { authorization: 'Bearer wrong' }),
      'Wrong webhook secret: the bearer token of the request is not',
    ],
    ['a body that is no JSON', post('{"a-name'), '`body` (a string of 8 characters) is not valid JSON'],
    ['a compressed body', post(E1, { 'content-encoding': 'gzip' }), 'Expected an uncompressed body, got the'],
    [
      'a long body',
      post(E1, { 'content-length': '99999999' }),
      'The webhook body is longer than 2097152 bytes',
    ],
  ])('%s → one line that names the rule and shows nothing of the request', async (_title, request, rule) => {
    await makeHandler()(request);
    const { calls } = vi.mocked(console.warn).mock;
    expect(calls).toEqual([[expect.stringContaining(`[tracking-client] Refused a webhook: ${rule}`)]]);
    expect(JSON.stringify(calls)).not.toMatch(/a-name|wrong"/);
  });

  test('requests refused for several reasons in a minute → one line for each reason', async () => {
    const handler = makeHandler();
    const requests = () => [
      post(E1, { authorization: 'Bearer wrong' }),
      post(E1, { authorization: undefined }),
      post(E1, { 'content-type': 'text/plain' }),
      post(E1, { 'content-encoding': 'gzip' }),
      post('{'),
      post(E1, { 'content-length': '99999999' }),
    ];
    for (const request of [...requests(), ...requests()]) await handler(request);
    const lines = vi.mocked(console.warn).mock.calls.map(([line]) => String(line));
    expect(lines).toEqual([
      expect.stringContaining('Wrong webhook secret'),
      expect.stringContaining('without a bearer token'),
      expect.stringContaining('`content-type`'),
      expect.stringContaining('is not valid JSON'),
      expect.stringContaining('is longer than'),
    ]);
    await vi.advanceTimersByTimeAsync(60_000);
    await handler(post('{'));
    expect(console.warn).toHaveBeenLastCalledWith(
      expect.stringMatching(/is not valid JSON .*"similarLinesLeftOut":1/),
    );
  });

  test('a store that is down for a minute → one line, then one with the number of unlogged failures', async () => {
    const store = new ScriptedStore();
    store.before = failing;
    const handler = makeHandler({ store });
    for (let count = 0; count < 100; count += 1) await handler(webhook('e1'));
    expect(console.error).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(
        /^\[tracking-client\] The store could not look up the events of a webhook, so .*: no database/,
      ),
      expect.any(Error),
    );
    await vi.advanceTimersByTimeAsync(60_000);
    await handler(webhook('e1'));
    expect(console.error).toHaveBeenCalledTimes(2);
    expect(console.error).toHaveBeenLastCalledWith(
      expect.stringContaining('"similarLinesLeftOut":99'),
      expect.any(Error),
    );
  });

  test('two callbacks that fail in a minute → a line each', async () => {
    await makeHandler({ onEvent: failing })(webhook('e1', 'e2'));
    expect(console.error).toHaveBeenCalledTimes(2);
  });

  test('an onError → gets every failure of the store', async () => {
    const store = new ScriptedStore();
    store.before = failing;
    const onError = vi.fn();
    const handler = makeHandler({ store, onError });
    for (let count = 0; count < 3; count += 1) await handler(webhook('e1'));
    expect(onError).toHaveBeenCalledTimes(3);
  });
});

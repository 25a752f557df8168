// A Promise where a value belongs comes from a forgotten `await`.
import {
  type ConfigurationError,
  RequestValidationError,
  TrackingClient,
  type TrackingClientOptions,
} from 'tracking-client';
import { buildTracker } from 'tracking-client/testing';
import { createWebhookHandler, parseWebhook, type WebhookInbox } from 'tracking-client/webhooks';
import { describe, expect, test } from 'vitest';
import { client, fake, first, inbox, TAKERS, trackers } from './support/takers.ts';

/** A value that TypeScript refuses, as JavaScript can pass it. */
// biome-ignore lint/suspicious/noExplicitAny: every type accepts it
const promise: any = Promise.resolve({});

async function catchError(run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    return error;
  }
}

test.each(Object.entries(TAKERS))('%s, a Promise as each option → named, with await', async (_, take) => {
  const { message } = Object(await catchError(() => take({ misspelt: 1 })));
  const [, known = ''] = /known options: (.*)$/.exec(String(message)) ?? [];
  const names = known.split(', ');
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const error = await catchError(() => take({ [name]: promise }));
    expect(error).toMatchObject({
      name: 'ConfigurationError',
      message: expect.stringMatching(new RegExp(`^\`(?:\\w+\\.)?${name}\` is a Promise; await it$`)),
    });
  }
});

describe('a Promise in place of all options', () => {
  const whole = Object.entries(TAKERS).filter(
    ([name]) =>
      !/^(?:pollMany\.add|RedisLimiter|\w+Store|WebhookInbox|createWebhook\w+|TrackingClient)$/.test(name),
  );
  test.each([
    ...whole,
    ['TrackingClient', (options: TrackingClientOptions) => new TrackingClient(options)],
    ['withOptions', (options: TrackingClientOptions) => client.withOptions(options)],
    ['createWebhookHandler', createWebhookHandler],
  ] as [string, (options: unknown) => unknown][])('%s → refused', async (_, take) => {
    const message = expect.stringMatching(/^`\w+` is a Promise; await it$/);
    expect(await catchError(() => take(promise))).toMatchObject({ name: 'ConfigurationError', message });
  });
});

test.each<[string, TrackingClientOptions]>([
  ['retry.retries', { retry: { retries: promise } }],
  ['headers.x-source', { headers: { 'x-source': promise } }],
  ['rateLimit.limits', { rateLimit: { limits: promise } }],
  ['rateLimit.limits["couriers.list"]', { rateLimit: { limits: { 'couriers.list': promise } } }],
  ['hooks[1]', { hooks: [{}, promise] }],
])('`%s` is a Promise → the path is named', async (path, options) => {
  const error = await catchError(() => TAKERS['TrackingClient']?.(options));
  const rule = 'is a Promise; await it';
  expect(error).toMatchObject({
    message: `\`${path}\` ${rule}`,
    option: path,
    rule,
  } satisfies Partial<ConfigurationError>);
});

test.each<[string, () => unknown]>([
  ['ids', () => first(trackers.pollMany(promise))],
  ['inputs', () => first(trackers.createMany(promise))],
  ['searchBy', () => trackers.get('an-id', { searchBy: promise })],
  ['query', () => trackers.list(promise)],
  ['query.page', () => trackers.list({ page: promise })],
])('a Promise as `%s` → ConfigurationError', async (name, run) => {
  const message = `\`${name}\` is a Promise; await it`;
  expect(await catchError(run)).toMatchObject({ name: 'ConfigurationError', message });
});

test.each<[string, () => unknown]>([
  ['input', () => trackers.create(promise)],
  ['trackingNumber', () => trackers.create({ trackingNumber: promise })],
  ['courierCode[1]', () => trackers.create({ trackingNumber: 'RR123456785CN', courierCode: ['a', promise] })],
  ['items', () => trackers.createBulk(promise)],
  ['items[1].title', () => trackers.createBulk([buildTracker(), { trackingNumber: 'A', title: promise }])],
  ['trackerId', () => trackers.get(promise)],
  ['input', () => trackers.update('an-id', promise)],
  ['path', () => client.request({ method: 'GET', path: promise })],
  ['body', () => client.request({ method: 'POST', path: '/trackers', body: promise })],
  [
    'body.trackingNumber',
    () => client.request({ method: 'POST', path: '/trackers', body: { trackingNumber: promise } }),
  ],
])('a Promise as `%s` of a request → RequestValidationError, nothing sent', async (path, run) => {
  const sent = fake.requests.length;
  const error = await catchError(run);
  expect(error).toBeInstanceOf(RequestValidationError);
  expect(error).toMatchObject({ message: expect.stringContaining(`\`${path}\` is a Promise; await it`) });
  expect(fake.requests).toHaveLength(sent);
});

test.each<[string, (body: unknown) => unknown]>([
  ['parseWebhook', parseWebhook],
  ['inbox.process', (body) => inbox.process(body, () => {})],
])('%s, a Promise as the body → WebhookParseError', async (_, take) => {
  for (const body of [promise, new Request('https://a.test', { method: 'POST', body: '{}' }).text()]) {
    const message = '`body` is a Promise; await it';
    expect(await catchError(() => take(body))).toMatchObject({ name: 'WebhookParseError', message });
  }
});

test.each<[string, (inbox: WebhookInbox, given: never) => unknown]>([
  ['results', (inbox, given) => inbox.processResults(given, () => {})],
  ['results[1]', (inbox, given) => inbox.processResults([{ tracking: undefined }, given], () => {})],
  ['history', (inbox, given) => inbox.processHistory(given, () => {})],
])('inbox, a Promise as `%s` → WebhookParseError', async (name, take) => {
  // Wrong on purpose, as in JavaScript.
  const given = promise as never;
  const message = `\`${name}\` is a Promise; await it`;
  expect(await catchError(() => take(inbox, given))).toMatchObject({ name: 'WebhookParseError', message });
});

test('a Promise in an object with methods, which is of another library → accepted', () => {
  const logger = { debug() {}, info() {}, warn() {}, error() {}, ready: Promise.resolve() };
  expect(TAKERS['TrackingClient']?.({ logger })).toBeInstanceOf(TrackingClient);
});

test('a function that returns a Promise → its own message, because nobody can await there', async () => {
  // Wrong on purpose, as in JavaScript.
  const intervalMs = (() => Promise.resolve(1_000)) as unknown as () => number;
  expect(await catchError(() => first(trackers.poll('an-id', { intervalMs })))).toMatchObject({
    message: expect.stringMatching(/^Expected `intervalMs` to return a number .*, got a Promise$/),
  });
});

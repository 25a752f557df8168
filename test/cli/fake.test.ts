import pc from 'picocolors';
import { describe, expect, it, vi } from 'vitest';
import { type FakeFlags, formatGreeting, formatPush, formatRequest } from '../../src/cli/fake.ts';
import {
  buildEvent,
  buildProofOfDelivery,
  buildTracker,
  buildWebhookMessage,
  type QueuedPush,
  type RecordedRequest,
  type SentWebhook,
} from '../../src/testing/index.ts';
import { parseFlags } from './make-terminal.ts';

function parse(line = ''): FakeFlags {
  return parseFlags(['fake', ...line.split(' ').filter(Boolean)]);
}

describe('the flags of the fake', () => {
  it('no flags → port 4010 of loopback, in real time', () => {
    const defaults = { host: '127.0.0.1', port: 4010, speed: 1, seed: '1', latency: 0, duplicates: 0 };
    const play = ['delivered'];
    expect(parse()).toEqual({ ...defaults, play });
  });

  it('all flags → all options are set', () => {
    const line =
      '-p 0 --host ::1 --play customs --play never-found --speed 60.5 --webhook-url http://127.0.0.1:3000/hooks ' +
      '--webhook-secret -hush --duplicates 2 --shuffle --api-key one --api-key two --per-call ' +
      '--quota 60 --limit trackers.create:2 --latency 250 --fail all:500:3 --seed mine';
    expect(parse(line)).toEqual({
      host: '::1',
      port: 0,
      apiKey: ['one', 'two'],
      play: ['customs', 'never-found'],
      speed: 60.5,
      seed: 'mine',
      perCall: true,
      quota: 60,
      limit: [{ 'trackers.create': 2 }],
      latency: 250,
      fail: [{ endpoint: '*', failure: { status: 500, times: 3 } }],
      webhookUrl: 'http://127.0.0.1:3000/hooks',
      webhookSecret: '-hush',
      duplicates: 2,
      shuffle: true,
    });
  });

  const webhookUrlRule =
    'Expected `--webhook-url` to be a URL that begins with http:// or https:// and has no user name or password';
  const keyRule = 'visible ASCII characters without spaces, quotes and backslashes';
  const limitRule = 'Expected `--limit` to be [ENDPOINT:]NUMBER or off, with a NUMBER from 0 to 1000000';
  it.each([
    ['--port 65536', 'Expected `--port` to be a whole number from 0 to 65535, got "65536"'],
    ['--speed 0.5', 'Expected `--speed` to be a number of at least 1, got "0.5"'],
    ['--limit a:b:1', limitRule],
    ['--limit trackers.get:x', limitRule],
    ['--fail 200', /^Expected `--fail` to be a status from 400 to 599 or one of reset, .*, got "200"$/],
    [
      '--fail trackers.make:500',
      /^`--fail` has the unknown endpoint "trackers\.make"; known: all, trackers\.create, trackers\.list, /,
    ],
    [
      '--fail all:500:often',
      'Expected TIMES in `--fail` to be "all" or a whole number from 1 to 1000000, got "often"',
    ],
    ['--fail 500:0', /^Expected TIMES in `--fail` to be .*, got "0"$/],
    ['--fail 500:', /^Expected TIMES in `--fail` to be .*, got ""$/],
    ['--fail 500:1:2', 'Expected `--fail` to be [ENDPOINT:]FAILURE[:TIMES]'],
    ['--fail a:b:500', 'Expected `--fail` to be [ENDPOINT:]FAILURE[:TIMES]'],
    ['--webhook-url localhost:3000', `${webhookUrlRule}, got 'localhost:3000'`],
    // A user name or a key may be secret, so these messages do not show the text.
    ['--webhook-url ftp://host/', `${webhookUrlRule}, got 'ftp://host/'`],
    ['--webhook-url http://user:hunter2@host/', `${webhookUrlRule}, got a string of 25 characters`],
    ['--webhook-secret héh', 'Expected `--webhook-secret` to be visible ASCII characters without spaces'],
    ['--api-key héh', `Expected \`--api-key\` to be ${keyRule}`],
    ['--api-key a"b', `Expected \`--api-key\` to be ${keyRule}`],
    ['--api-key=', 'Expected `--api-key` to be a non-empty string, got an empty string'],
  ])('%s → refused with the rule', (line, message) => {
    const flaw = typeof message === 'string' ? message : expect.stringMatching(message);
    expect(() => parse(line)).toThrow(expect.objectContaining({ exitCode: 2, message: flaw }));
  });

  it.each([
    ['reset', { endpoint: '*', failure: { kind: 'reset', times: 1 } }],
    ['trackers.create:429', { endpoint: 'trackers.create', failure: { status: 429, times: 1 } }],
    ['500:3', { endpoint: '*', failure: { status: 500, times: 3 } }],
    ['stall:all', { endpoint: '*', failure: { kind: 'stall', times: Number.POSITIVE_INFINITY } }],
    ['all:503:all', { endpoint: '*', failure: { status: 503, times: Number.POSITIVE_INFINITY } }],
  ])('--fail %s → planned', (text, planned) => {
    expect(parse(`--fail ${text}`).fail).toEqual([planned]);
  });

  it('TRACKING_WEBHOOK_SECRET → the secret, unless the flag sets another secret', () => {
    vi.stubEnv('TRACKING_WEBHOOK_SECRET', 'of-the-environment');
    expect(parse().webhookSecret).toBe('of-the-environment');
    expect(parse('--webhook-secret given').webhookSecret).toBe('given');
  });
});

const colours = pc.createColors(false);
const AT_MS = new Date(2026, 2, 10, 9, 5, 7).getTime();

describe('the line of a request', () => {
  const base: RecordedRequest = {
    endpoint: undefined,
    method: 'GET',
    path: '/v1/couriers',
    query: {},
    body: undefined,
    headers: {},
    receivedAtMs: AT_MS,
    requestId: 'r1',
    status: 200,
    failure: undefined,
    error: undefined,
  };
  it.each<[string, string, Partial<RecordedRequest>]>([
    ['a query', 'GET    /v1/couriers?page=1&q=a+b%1B → 200', { query: { page: '1', q: 'a b\u001b' } }],
    ['a path that a terminal would obey', 'GET    /v1/ → 200', { path: '/v1/\u009b2J' }],
    ['a number', 'POST   /v1/couriers RR1/-_ → 200', { method: 'POST', body: { trackingNumber: 'RR1/-_' } }],
    ['two items', 'GET    /v1/couriers 2 items → 200', { body: [{}, {}] }],
    ['no number', 'GET    /v1/couriers → 200', { body: { trackingNumber: 'R\u001b[2J' } }],
    [
      'a broken connection',
      'GET    /v1/couriers → no response (failure: reset)',
      { status: null, failure: 'reset' },
    ],
    ['a reason', 'GET    /v1/couriers → 200 x: Why', { error: { code: 'x', message: 'Why\u001b[2J' } }],
  ])('%s → "%s"', (_, line, request) => {
    expect(formatRequest({ ...base, ...request }, colours)).toBe(`09:05:07 ${line}`);
  });
});

describe('the line of a webhook', () => {
  const tracker = buildTracker({ trackingNumber: 'RR123456785CN' });
  const proof = { trackerId: 't', item: buildProofOfDelivery({ tracker }), isReplay: false, attempts: [] };
  function makeEventsPush(...statuses: string[]): QueuedPush {
    const item = buildWebhookMessage({ tracker, events: statuses.map((status) => buildEvent({ status })) });
    return { trackerId: tracker.trackerId, item, isReplay: false, attempts: [] };
  }
  const delivered = makeEventsPush('Delivered');
  const REFUSED = { status: null, succeeded: false };
  it.each<[string, string, Partial<SentWebhook>, QueuedPush]>([
    ['an accepted push', 'Delivered → 200', {}, delivered],
    ['several events', 'Delivered (2 events) → 200', {}, makeEventsPush('Delivered', 'In transit')],
    ['escape codes', 'at home now → 200', {}, makeEventsPush('at\u001b[2J home\u009b31m\u202e\r\nnow')],
    ['a proof of delivery', 'proof of delivery → 200', {}, proof],
    ['a resent push', 'Delivered (resent) → 200', {}, { ...delivered, isReplay: true }],
    ['a refusal', 'Delivered → 500, attempt 2 of 20', { ...REFUSED, status: 500, attempt: 2 }, delivered],
    ['the last attempt', 'Delivered → no response, given up', { ...REFUSED, attempt: 20 }, delivered],
    [
      'success: false',
      'Delivered → 200, but its body has success: false, attempt 1 of 20',
      { ...REFUSED, status: 200 },
      delivered,
    ],
  ])('%s → "%s"', (_, line, sent, push) => {
    const webhook: SentWebhook = { attempt: 1, status: 200, succeeded: true, ...sent };
    const text = formatPush(webhook, [push], AT_MS, colours);
    expect(text).toBe(`09:05:07 push   RR123456785CN ${line}`);
  });
});

describe('the greeting', () => {
  const greet = (line?: string) => formatGreeting('http://127.0.0.1:4010/public/v1', parse(line), colours);

  it('no flags → what to set, and that any key and no webhook is in use', () => {
    expect(greet().split('\n').slice(1)).toEqual([
      '  Base URL  http://127.0.0.1:4010/public/v1',
      '  API key   any key is accepted',
      '  Webhooks  none; --webhook-url sends them to your app',
      '  Play      delivered, in real time',
      '  For apps  export TRACKING_BASE_URL=http://127.0.0.1:4010/public/v1 TRACKING_API_KEY=any',
      '  By hand   curl -H "Authorization: Bearer any" http://127.0.0.1:4010/public/v1/couriers',
      '  Ctrl-C stops the service.',
    ]);
  });

  it.each([
    ['--api-key k', 'curl -H "Authorization: Bearer $TRACKING_API_KEY" http'],
    ['--play none', 'Play      none; events come from POST /__fake/events\n'],
    ['--play customs delivered --speed 60', 'customs, then delivered, 60 times faster than real time\n'],
    ['--speed Infinity', 'delivered, all at once\n'],
  ])('the flags %j → %j', (line, text) => {
    expect(greet(line)).toContain(text);
  });

  it('a secret and an API key → neither is shown', () => {
    const text = greet('--webhook-url http://h/ --webhook-secret hush-1 --api-key key-1');
    expect(text).toContain('http://h/, with the secret\n');
    expect(text).toContain('one key is accepted\n');
    expect(text).not.toMatch(/hush-1|key-1/);
  });
});

import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { TrackingClient } from '../../../src/client.ts';
import { TrackingError } from '../../../src/errors.ts';
import type { RequestOptions, TrackingClientOptions } from '../../../src/options.ts';
import { API_KEY, catchRejection, makeClient, networkFailure, type Step } from '../../support/make-client.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

const never: Step = () => new Promise<Response>(() => {});
const stalled: Step = () => new Response(new ReadableStream());
const broken: Step = () =>
  new Response(new ReadableStream({ pull: (stream) => stream.error(new Error('cut')) }));
const LONG_PAUSE: Step = { status: 429, headers: { 'retry-after': '3600' } };
const refuse = () => {
  throw new TrackingError('The vault is closed');
};
function slowAtFirst(): () => string | Promise<string> {
  let calls = 0;
  return () => {
    calls += 1;
    return calls === 1 ? new Promise(() => {}) : API_KEY;
  };
}
const FACTS = ['callId', 'endpoint', 'method', 'path', 'attempts'];

interface Failure {
  readonly script: Step | readonly Step[];
  readonly client?: TrackingClientOptions;
  readonly call?: RequestOptions;
  /** True if another call takes the only token first. */
  readonly isSecond?: boolean;
}

const once = { retry: false } as const;
const oneToken = { rateLimit: { limits: { 'trackers.get': 1 } }, ...once };

const FAILURES: [what: string, name: string, attempts: number, failure: Failure][] = [
  ['a 404', 'NotFoundError', 1, { script: { status: 404 }, client: once }],
  ['a 404 after a 500', 'NotFoundError', 2, { script: [{ status: 500 }, { status: 404 }] }],
  ['a redirect', 'ApiError', 1, { script: { status: 302 } }],
  ['a 429 that asks for an hour', 'RateLimitError', 1, { script: LONG_PAUSE }],
  ['a paused endpoint', 'RateLimitError', 0, { script: LONG_PAUSE, client: oneToken, isSecond: true }],
  [
    'a full queue',
    'QueueFullError',
    0,
    { script: never, client: { ...once, rateLimit: { ...oneToken.rateLimit, maxQueue: 0 } }, isSecond: true },
  ],
  ['a success of HTML', 'ResponseValidationError', 1, { script: { body: '<p>' } }],
  [
    'a body that is too long',
    'ResponseValidationError',
    1,
    { script: { body: '{}' }, client: { maxResponseBytes: 1 } },
  ],
  ['a refused connection', 'ConnectionError', 1, { script: networkFailure('ECONNREFUSED'), client: once }],
  ['a body that broke off', 'ConnectionError', 1, { script: broken, client: once }],
  [
    'a timeout in the queue',
    'TimeoutError',
    0,
    { script: never, client: oneToken, call: { totalTimeoutMs: 50 }, isSecond: true },
  ],
  ['a timeout before the headers', 'TimeoutError', 1, { script: never, client: once }],
  ['a timeout in the body', 'TimeoutError', 1, { script: stalled, client: once }],
  [
    'a timeout before the next attempt',
    'TimeoutError',
    1,
    { script: { status: 503, headers: { 'retry-after': '30' } }, call: { totalTimeoutMs: 50 } },
  ],
  [
    'a key function that never ends',
    'TimeoutError',
    0,
    { script: never, client: { ...once, apiKey: () => new Promise<string>(() => {}) } },
  ],
  [
    'a 404 after a key function that was too slow',
    'NotFoundError',
    1,
    { script: { status: 404 }, client: { apiKey: slowAtFirst() } },
  ],
  [
    'a key function that throws a TrackingError',
    'ConfigurationError',
    0,
    { script: {}, client: { apiKey: refuse } },
  ],
  [
    'a key function that returns no key',
    'ConfigurationError',
    0,
    { script: {}, client: { apiKey: () => '' } },
  ],
];

describe('an error of a call', () => {
  test.each(FAILURES)('%s → %s with the facts of its call, after %d requests', async (...row) => {
    const [, name, attempts, { script, client: options, call, isSecond }] = row;
    const starts: string[] = [];
    const lines: unknown[] = [];
    const debug = (_text: string, fields?: object) => lines.push(fields);
    const { client } = makeClient(script, {
      hooks: { onStart: ({ callId }) => starts.push(callId) },
      logger: { debug, info: debug, warn: debug, error: debug },
      logLevel: 'debug',
      ...options,
    });
    const get = () => client.trackers.get('order 7', { searchBy: 'clientTrackerId', timeoutMs: 50, ...call });
    const error = await settleInVirtualTime(async () => {
      if (isSecond) {
        const first = client.trackers.get('first', { timeoutMs: 1_000 }).catch(() => {});
        if (script === LONG_PAUSE) await first;
      }
      return catchRejection(get());
    });

    const path = '/trackers/{trackerId}';
    const facts = { name, callId: starts.at(-1), endpoint: 'trackers.get', method: 'GET', path, attempts };
    expect(error).toBeInstanceOf(TrackingError);
    expect(error).toMatchObject(facts);
    expect(lines).toContainEqual(expect.objectContaining({ callId: facts.callId }));
    expect(JSON.parse(JSON.stringify(error))).toMatchObject(facts);
    expect(inspect(error)).toContain(`callId: '${facts.callId}'`);
    // Without the folder of the checkout, which stands in each line of the stack. About 600 characters are frames of the test runner.
    expect(inspect(error).replaceAll(process.cwd(), '').length).toBeLessThan(2_500);
    expect(inspect(error)).not.toMatch(/order|searchBy|sk-live/);
    expect(error).toHaveProperty('stack', expect.stringContaining('facts.test.ts:'));
  });

  test('no results yet → ResultsNotReadyError with the facts of its call', async () => {
    const { client } = makeClient({ body: { data: { trackings: [] } } });
    const error = await catchRejection(client.trackers.results('t'));
    expect(error).toMatchObject({
      name: 'ResultsNotReadyError',
      callId: expect.any(String),
      endpoint: 'trackers.results',
    });
  });

  test('a failure that is retried → hooks get it with the facts of its call', async () => {
    const errors: unknown[] = [];
    const { client } = makeClient([networkFailure('ECONNRESET'), { body: { data: [] } }], {
      hooks: {
        onError: ({ error, callId }) => errors.push(error, callId),
        onRetry: ({ error }) => errors.push(error),
      },
    });
    await settleInVirtualTime(() => client.couriers.list());
    const [error, callId, again] = errors;
    expect(error).toMatchObject({ callId, endpoint: 'couriers.list', attempts: 1 });
    expect(again).toBe(error);
  });

  test('a path outside the table that contains the key → shown without key and query', async () => {
    const { client } = makeClient({ status: 404 });
    const path = `/reports/${API_KEY}`;
    const error = await catchRejection(client.request({ method: 'GET', path, query: { name: 'Ada' } }));
    expect(error).toMatchObject({ endpoint: 'request', path: '/reports/[redacted]' });
    expect(inspect(error)).not.toMatch(/sk-live|Ada/);
  });
});

test('a success after a key function that was too slow → one attempt, the request that was sent', async () => {
  const { client, requests } = makeClient({ body: { data: [] } }, { apiKey: slowAtFirst() });
  const call = () => client.couriers.list({ timeoutMs: 50 }).withResponse();
  expect(await settleInVirtualTime(call)).toMatchObject({ attempts: 1 });
  expect(requests).toHaveLength(1);
});

test.each([
  ['an invalid input', () => makeClient().client.trackers.create({ trackingNumber: '' })],
  ['an invalid option', () => makeClient().client.couriers.list({ timeoutMs: -1 })],
  ['a constructor', async () => new TrackingClient({ baseUrl: 'nowhere', apiKey: API_KEY })],
])('%s → an error without the facts of a call', async (_what, fail) => {
  const error = await catchRejection(fail());
  expect(error).toBeInstanceOf(TrackingError);
  for (const fact of FACTS) expect(error).not.toHaveProperty(fact);
});

import { context, diag, metrics, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { ResultsNotReadyError, TimeoutError, TrackingError } from '../../src/errors.ts';
import { telemetryHooks } from '../../src/opentelemetry/index.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { createFakeTrackingService } from '../../src/testing/index.ts';
import { catchRejection } from '../support/make-client.ts';
import { settled } from '../support/settled.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';
import { makeRecorder, type Recorder } from './recorder.ts';

const KEY = 'sk-live-0123456789abcdef';
const NUMBER = 'RR123456785CN';
const CALL = {
  callId: 'c',
  endpoint: 'couriers.list',
  method: 'GET',
  path: '/couriers',
  baseUrl: 'http://a.test',
} as const;
const SERVER = { 'server.address': '127.0.0.1', 'server.port': 8080 };
const ENDPOINT = { 'tracking_client.endpoint': 'trackers.create' };

let recorder: Recorder;
let fake: ReturnType<typeof createFakeTrackingService>;

beforeEach(() => {
  recorder = makeRecorder();
  context.setGlobalContextManager(recorder.contextManager.enable());
  fake = createFakeTrackingService({ apiKeys: [KEY] });
});

afterEach(async () => {
  context.disable();
  await recorder.close();
});

function makeClient(options: TrackingClientOptions = {}) {
  return new TrackingClient({
    baseUrl: 'http://127.0.0.1:8080/public/v1',
    apiKey: KEY,
    fetch: fake.fetch,
    hooks: telemetryHooks(recorder.telemetry),
    logLevel: 'silent',
    ...options,
  });
}

const create = (client: TrackingClient, signal?: AbortSignal) =>
  client.trackers.create({ trackingNumber: NUMBER }, { signal });

/** Creates a tracker in virtual time, so that waits between attempts take no real time. */
const createInVirtualTime = () => settleInVirtualTime(() => create(makeClient()));

/** The call's span and those of its attempts, first attempt first. */
function readTrace(): { readonly call: ReadableSpan; readonly attempts: readonly ReadableSpan[] } {
  const call = recorder.spans().at(-1);
  if (call === undefined) throw new Error('Expected a span, got none');
  return { call, attempts: recorder.spans().slice(0, -1) };
}

const readEvents = ({ events }: ReadableSpan) => events.map(({ name }) => name);

/** Returns all text of the spans that an exporter sends. */
const readExportedText = () =>
  JSON.stringify(
    recorder
      .spans()
      .map(({ name, attributes, events, status, links }) => [name, attributes, events, status, links]),
  );

describe('the spans of', () => {
  test('a call that succeeds → an internal span, and a client span of the attempt below it by the HTTP conventions', async () => {
    await create(makeClient());
    const { call, attempts } = readTrace();
    expect(call).toMatchObject({ name: 'trackers.create', kind: 0, status: { code: 0 }, ended: true });
    expect(call.attributes).toEqual({
      ...ENDPOINT,
      'tracking_client.call_id': expect.stringMatching(/^[\da-f-]{36}$/),
      'tracking_client.attempts': 1,
      ...SERVER,
    });
    const [attempt, ...others] = attempts;
    expect(others).toEqual([]);
    expect(attempt).toMatchObject({
      name: 'POST /public/v1/trackers',
      kind: 2,
      status: { code: 0 },
      parentSpanContext: { spanId: call.spanContext().spanId },
    });
    expect(attempt?.attributes).toEqual({
      'http.request.method': 'POST',
      ...SERVER,
      'url.template': '/public/v1/trackers',
      'http.response.status_code': 201,
      'http.response.header.x-request-id': [expect.any(String)],
    });
  });

  test('a call with ids in its path → the path template, and no id in any attribute', async () => {
    await catchRejection(makeClient({ retry: false }).trackers.get('secret-id'));
    const { attempts } = readTrace();
    expect(attempts.map(({ name }) => name)).toEqual(['GET /public/v1/trackers/{trackerId}']);
    expect(readExportedText()).not.toContain('secret-id');
  });

  test('a path of no endpoint → a span name without the path, because it may contain ids', async () => {
    await catchRejection(makeClient({ retry: false }).request({ method: 'GET', path: '/other/secret-id' }));
    const { call, attempts } = readTrace();
    expect([call, ...attempts].map(({ name }) => name)).toEqual(['request', 'GET']);
    expect(attempts[0]?.attributes).not.toHaveProperty('url.template');
    expect(readExportedText()).not.toContain('secret-id');
  });

  test('a 404 for results that are not there yet → no error, and an attribute that tells it', async () => {
    fake = createFakeTrackingService({ apiKeys: [KEY], noResults: 'parcel_not_found' });
    const client = makeClient();
    const { trackerId } = await create(client);
    await expect(client.trackers.results(trackerId)).rejects.toThrow(ResultsNotReadyError);
    const { call } = readTrace();
    expect(call).toMatchObject({
      name: 'trackers.results',
      status: { code: 0 },
      attributes: { 'tracking_client.results_ready': false },
    });
    const points = await recorder.points('tracking_client.call.duration');
    for (const attributes of [call.attributes, ...points.map((point) => point.attributes)])
      expect(attributes).not.toHaveProperty(['error.type']);
  });

  test.each([
    ['https://[::1]/v1', { 'server.address': '::1', 'server.port': 443 }, '/v1/trackers'],
    ['http://localhost', { 'server.address': 'localhost', 'server.port': 80 }, '/trackers'],
  ])('the base URL %s → its address, its default port, and its path', async (baseUrl, server, template) => {
    const fetch = () => Promise.reject(new Error('no'));
    await catchRejection(create(makeClient({ baseUrl, fetch, retry: false })));
    const { call, attempts } = readTrace();
    expect(call.attributes).toMatchObject(server);
    expect(attempts[0]?.attributes).toMatchObject({ ...server, 'url.template': template });
  });

  test('a call inside a span of the user → a child of that span', async () => {
    await recorder.tracer.startActiveSpan('checkout', async (span) => {
      await create(makeClient());
      span.end();
    });
    const [attempt, call, checkout] = recorder.spans();
    expect(call?.parentSpanContext?.spanId).toBe(checkout?.spanContext().spanId);
    expect(attempt?.spanContext().traceId).toBe(checkout?.spanContext().traceId);
  });

  test('two calls at a time → each attempt is a child of its own call', async () => {
    const client = makeClient();
    await Promise.all([create(client), client.couriers.list()]);
    const spans = recorder.spans();
    const findId = (name: string) => spans.find((span) => span.name === name)?.spanContext().spanId;
    const findParent = (name: string) => spans.find((span) => span.name === name)?.parentSpanContext?.spanId;
    expect(findParent('GET /public/v1/couriers')).toBe(findId('couriers.list'));
    expect(findParent('POST /public/v1/trackers')).toBe(findId('trackers.create'));
  });

  test('a 500 and then a success → two attempts, the first an error, the second a resend', async () => {
    fake.fail('trackers.create', { status: 500, times: 1 });
    await createInVirtualTime();
    const { call, attempts } = readTrace();
    expect(attempts).toMatchObject([
      { status: { code: 2 }, attributes: { 'error.type': '500', 'http.response.status_code': 500 } },
      {
        status: { code: 0 },
        attributes: { 'http.response.status_code': 201, 'http.request.resend_count': 1 },
      },
    ]);
    expect(attempts[0]?.attributes).not.toHaveProperty(['http.request.resend_count']);
    expect(attempts[1]?.attributes).not.toHaveProperty(['error.type']);
    expect(call).toMatchObject({ status: { code: 0 }, attributes: { 'tracking_client.attempts': 2 } });
    expect(readEvents(call)).toEqual([
      'tracking_client.queued',
      'tracking_client.retry',
      'tracking_client.queued',
    ]);
    const wait = { 'tracking_client.wait_ms': expect.any(Number) };
    expect(call.events[1]?.attributes).toEqual({ 'error.type': 'ServerError', ...wait });
  });

  test('a 429 → events for the pause and for the wait in the queue', async () => {
    fake.fail('trackers.create', { status: 429, retryAfterMs: 30_000 });
    await createInVirtualTime();
    const { call } = readTrace();
    expect(readEvents(call)).toEqual([
      'tracking_client.queued',
      'tracking_client.rate_limited',
      'tracking_client.retry',
      'tracking_client.queued',
    ]);
    expect(call.events[1]?.attributes).toEqual({ 'tracking_client.delay_ms': 30_000 });
    expect(call.events[2]?.attributes).toEqual({
      'error.type': 'RateLimitError',
      'tracking_client.retry_after_ms': 30_000,
      'tracking_client.wait_ms': 30_000,
    });
    // The back-off before it takes 0.5 to 1 s.
    expect(call.events[3]?.attributes?.['tracking_client.queued_ms']).toBeGreaterThanOrEqual(29_000);
  });

  test('an abort during a request → both spans end with the type of the reason, without its message', async () => {
    fake.fail('trackers.create', { kind: 'timeout' });
    const controller = new AbortController();
    const { onRequest, ...hooks } = telemetryHooks(recorder.telemetry);
    const client = makeClient({
      hooks: {
        ...hooks,
        onRequest: (info) => {
          onRequest?.(info);
          setImmediate(() => controller.abort(new RangeError(`not ${KEY}`)));
        },
      },
    });
    await catchRejection(create(client, controller.signal));
    const { call, attempts } = readTrace();
    expect(attempts).toHaveLength(1);
    for (const span of [call, ...attempts])
      expect(span).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'RangeError' } });
    expect(readExportedText()).not.toContain(KEY);
  });

  test('an abort in the queue → no attempt span, and an event for the wait', async () => {
    const client = makeClient({ rateLimit: { limits: { 'trackers.create': 1 } } });
    await create(client);
    const controller = new AbortController();
    const waiting = catchRejection(create(client, controller.signal));
    await settled();
    controller.abort('enough');
    await waiting;
    const call = recorder.spans().at(-1);
    expect(recorder.spans()).toHaveLength(3);
    expect(call).toMatchObject({
      status: { code: 2 },
      attributes: { 'error.type': '_OTHER', 'tracking_client.attempts': 0 },
    });
    expect(call?.events.map(({ name }) => name)).toEqual(['tracking_client.queued']);
  });

  test('an attempt that times out before its request is sent → its span ends with TimeoutError', async () => {
    const aroundAttempt = async <T>(_info: object, send: () => Promise<T>) => {
      await new Promise((resolve) => setTimeout(resolve, 40));
      return await send();
    };
    const hooks = [telemetryHooks(recorder.telemetry), { aroundAttempt }];
    await catchRejection(create(makeClient({ hooks, timeoutMs: 20, retry: false })));
    await expect.poll(() => recorder.spans().map(({ name }) => name)).toHaveLength(2);
    for (const span of recorder.spans())
      expect(span).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': 'TimeoutError' } });
  });

  test('a timeout → both spans end with TimeoutError and its message', async () => {
    fake.fail('trackers.create', { kind: 'timeout' });
    await catchRejection(create(makeClient({ timeoutMs: 20, retry: false })));
    const { call, attempts } = readTrace();
    const status = { code: 2, message: expect.stringContaining('timed out after 20 ms (`timeoutMs`)') };
    for (const span of [call, ...attempts])
      expect(span).toMatchObject({ status, attributes: { 'error.type': 'TimeoutError' } });
  });

  test('an error that echoes the key → no attribute, event or status contains the key', async () => {
    fake.fail('trackers.create', { status: 400, message: `no such key: ${KEY}`, times: 1 });
    await catchRejection(create(makeClient()));
    const text = readExportedText();
    expect(text).toContain('no such key');
    expect(text).not.toContain(KEY);
    expect(text).not.toContain(NUMBER);
  });
});

describe('the metrics of', () => {
  test('known durations in milliseconds → recorded in seconds', async () => {
    const hooks = telemetryHooks(recorder.telemetry);
    hooks.onStart?.(CALL);
    hooks.onDone?.({ ...CALL, error: undefined, attempts: 1, queuedMs: 250, durationMs: 1500 });
    hooks.onPoll?.({ id: 'a', lagMs: 2500 });
    const attributes = { 'tracking_client.endpoint': 'couriers.list' };
    const read = (name: string) => recorder.points(`tracking_client.${name}`);
    expect(await read('call.duration')).toEqual([{ attributes, value: { count: 1, sum: 1.5 } }]);
    expect(await read('queue.duration')).toEqual([{ attributes, value: { count: 1, sum: 0.25 } }]);
    expect(await read('poll.lag')).toEqual([{ attributes: {}, value: { count: 1, sum: 2.5 } }]);
  });

  test('a 429 and a 500 → counted, with the retries by reason', async () => {
    fake.fail('trackers.create', { status: 429, headers: { 'retry-after': '0.01' } });
    fake.fail('trackers.create', { status: 500, times: 1 });
    await createInVirtualTime();
    expect(await recorder.points('tracking_client.rate_limited')).toEqual([
      { attributes: ENDPOINT, value: 1 },
    ]);
    expect(await recorder.points('tracking_client.retries')).toEqual([
      { attributes: { ...ENDPOINT, 'error.type': 'RateLimitError' }, value: 1 },
      { attributes: { ...ENDPOINT, 'error.type': 'ServerError' }, value: 1 },
    ]);
  });

  test('a back-off of 1.5 s → a wait of 1.5 s', async () => {
    const info = { ...CALL, attempt: 1, queuedMs: 7_000, error: new TrackingError('x') };
    telemetryHooks(recorder.telemetry).onRetry?.({ ...info, retryAfterMs: 100, waitMs: 1_500 });
    expect(await recorder.points('tracking_client.retry.wait')).toMatchObject([
      { value: { count: 1, sum: 1.5 } },
    ]);
  });

  test('polls that failed → counted by the class of the error', async () => {
    const hooks = telemetryHooks(recorder.telemetry);
    const failures = [new TimeoutError('a', { phase: 'headers', timeoutMs: 1 }), new TrackingError('b')];
    for (const error of [...failures, ...failures.slice(1)])
      hooks.onPollError?.({ id: 'a', error, errorsInARow: 1, isOutage: false });
    expect(await recorder.points('tracking_client.poll.errors')).toEqual([
      { attributes: { 'error.type': 'TimeoutError' }, value: 1 },
      { attributes: { 'error.type': 'TrackingError' }, value: 2 },
    ]);
  });

  test('all metrics → the HTTP metric and those of this package, with units', async () => {
    fake.fail('trackers.create', { status: 429, headers: { 'retry-after': '0.01' } });
    await createInVirtualTime();
    const { onPoll, onPollError } = telemetryHooks(recorder.telemetry);
    onPoll?.({ id: 'a', lagMs: 0 });
    onPollError?.({ id: 'a', error: new TrackingError('b'), errorsInARow: 1, isOutage: false });
    expect(await recorder.metricNames()).toEqual([
      'http.client.request.duration s',
      'tracking_client.call.duration s',
      'tracking_client.poll.errors {poll}',
      'tracking_client.poll.lag s',
      'tracking_client.queue.duration s',
      'tracking_client.rate_limited {response}',
      'tracking_client.retries {attempt}',
      'tracking_client.retry.wait s',
    ]);
  });
});

describe('http.client.request.duration', () => {
  const readPoints = () => recorder.points('http.client.request.duration');

  test('a 500 and then a success → one point each, with the attributes of the HTTP conventions', async () => {
    fake.fail('trackers.create', { status: 500, times: 1 });
    await createInVirtualTime();
    const request = {
      'http.request.method': 'POST',
      ...SERVER,
    };
    expect((await readPoints()).map(({ attributes }) => attributes)).toEqual([
      { ...request, 'http.response.status_code': 500, 'error.type': '500' },
      { ...request, 'http.response.status_code': 201 },
    ]);
  });

  test('a connection that breaks → the error type as attribute, and no status', async () => {
    fake.fail('trackers.create', { kind: 'reset' });
    await catchRejection(create(makeClient({ retry: false })));
    const [point] = await readPoints();
    expect(point?.attributes).toMatchObject({ 'error.type': 'ConnectionError' });
    expect(point?.attributes).not.toHaveProperty('http.response.status_code');
  });

  test('attempts: false → no HTTP metric and no spans of attempts', async () => {
    await create(makeClient({ hooks: telemetryHooks({ ...recorder.telemetry, attempts: false }) }));
    expect(recorder.spans().map(({ name }) => name)).toEqual(['trackers.create']);
    expect(await readPoints()).toEqual([]);
  });
});

describe('the providers', () => {
  test('no providers → the globally registered ones, even if registered after the hooks were made', async () => {
    const client = makeClient({ hooks: telemetryHooks() });
    trace.setGlobalTracerProvider(recorder.telemetry.tracerProvider);
    metrics.setGlobalMeterProvider(recorder.telemetry.meterProvider);
    await create(client);
    trace.disable();
    metrics.disable();
    expect(recorder.spans().map(({ name }) => name)).toEqual(['POST /public/v1/trackers', 'trackers.create']);
    expect(await recorder.points('tracking_client.call.duration')).toHaveLength(1);
  });

  test.each([
    [{ tracerProvider: {} }, 'Expected `telemetry.tracerProvider` to be a TracerProvider, got an object'],
    [{ meterProvider: 'a' }, 'Expected `telemetry.meterProvider` to be a MeterProvider, got a string'],
    [{ tracer: {} }, 'Unknown option `telemetry.tracer`; known options: '],
    [null, 'Expected `telemetry` to be an object, got null'],
  ])('%o → refused', (options, message) => {
    expect(() => Reflect.apply(telemetryHooks, undefined, [options])).toThrow(message);
  });
});

test('a hook that is called after the end of its call → adds nothing to the ended span', async () => {
  const hooks = telemetryHooks(recorder.telemetry);
  const warnings: unknown[] = [];
  const ignore = () => {};
  const warn = (line: unknown) => warnings.push(line);
  diag.setLogger({ warn, error: warn, info: ignore, debug: ignore, verbose: ignore });
  const attempt = { ...CALL, attempt: 1, queuedMs: 0 };
  hooks.onStart?.(CALL);
  hooks.onDone?.({ ...CALL, error: undefined, attempts: 1, queuedMs: 0, durationMs: 5 });
  hooks.onRetry?.({ ...attempt, error: new TrackingError('late'), retryAfterMs: undefined, waitMs: 1 });
  diag.disable();
  expect(warnings).toEqual([]);
  expect(recorder.spans()).toHaveLength(1);
});

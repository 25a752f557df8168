import { context } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tracedWebhookHandler } from '../../src/opentelemetry/index.ts';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  type WebhookHandler,
  type WebhookHandlerOptions,
  WebhookInbox,
  type WebhookReport,
} from '../../src/webhooks/index.ts';
import { buildPayload } from '../integration/webhook-loopback.ts';
import { settled } from '../support/settled.ts';
import { makeRecorder, type Recorder } from './recorder.ts';

const SECRET = 'whsec-0123456789abcdef';

let recorder: Recorder;

beforeEach(() => {
  recorder = makeRecorder();
  context.setGlobalContextManager(recorder.contextManager.enable());
});

afterEach(async () => {
  context.disable();
  await recorder.close();
});

const buildOptions = (options: object = {}): WebhookHandlerOptions => ({
  secret: SECRET,
  inbox: new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} }),
  onEvent: () => {},
  onRefused: () => {},
  ...options,
});
const makeHandler = (options: Partial<WebhookHandlerOptions> = {}) =>
  tracedWebhookHandler(createWebhookHandler, buildOptions(options), recorder.telemetry);

function post(handler: WebhookHandler, body = buildPayload('e-1'), secret = SECRET): Promise<Response> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  return handler(new Request('http://a.test', { method: 'POST', headers, body }));
}

const readCounts = async (name: string) =>
  (await recorder.points(`tracking_client.${name}`)).map(({ attributes, value }) => [attributes, value]);
const outcome = (name: string) => ({ 'tracking_client.webhook.outcome': name });

/** Returns all text of the spans that an exporter sends, except their names. */
const readExportedText = () =>
  JSON.stringify(recorder.spans().map(({ attributes, events, status }) => [attributes, events, status]));

describe('a webhook that is', () => {
  test('handled → a counted server span with its outcome; the response is unchanged', async () => {
    const response = await post(makeHandler());
    expect([response.status, await response.json()]).toEqual([200, { success: true, outcome: 'done' }]);
    expect(recorder.spans()).toMatchObject([
      { name: 'process webhook', kind: 1, status: { code: 0 }, ended: true },
    ]);
    expect(recorder.spans()[0]?.attributes).toEqual({
      ...outcome('done'),
      'tracking_client.webhook.handled': 1,
      'tracking_client.webhook.duplicates': 0,
      'http.request.method': 'POST',
      'http.response.status_code': 200,
    });
    expect(await readCounts('webhooks')).toEqual([[outcome('done'), 1]]);
    expect(await readCounts('webhook.duplicates')).toEqual([]);
  });

  test('handled by a callback that makes spans after a wait → children of the server span', async () => {
    const onEvent = async () => {
      await settled();
      recorder.tracer.startActiveSpan('save the event', (span) => span.end());
    };
    await post(makeHandler({ onEvent }));
    const [saved, webhook] = recorder.spans();
    expect([saved?.name, webhook?.name]).toEqual(['save the event', 'process webhook']);
    expect(saved?.parentSpanContext?.spanId).toBe(webhook?.spanContext().spanId);
  });

  test('received inside a span of the server → a child of that span', async () => {
    await recorder.tracer.startActiveSpan('POST /webhooks', async (span) => {
      await post(makeHandler());
      span.end();
    });
    const [webhook, serverSpan] = recorder.spans();
    expect(webhook?.parentSpanContext?.spanId).toBe(serverSpan?.spanContext().spanId);
    expect(webhook?.kind).toBe(0);
  });

  test('sent twice → the second span has outcome done and one duplicate, which is counted', async () => {
    const handler = makeHandler();
    await post(handler);
    await post(handler);
    expect(recorder.spans().map(({ attributes }) => attributes)).toMatchObject([
      { 'tracking_client.webhook.handled': 1, 'tracking_client.webhook.duplicates': 0 },
      { 'tracking_client.webhook.handled': 0, 'tracking_client.webhook.duplicates': 1 },
    ]);
    expect(await readCounts('webhooks')).toEqual([[outcome('done'), 2]]);
    expect(await readCounts('webhook.duplicates')).toEqual([[{}, 1]]);
  });

  test('refused for its secret → a span with that outcome, without an error or the secret', async () => {
    await post(makeHandler(), buildPayload('e-1'), 'guessed-secret');
    expect(recorder.spans()).toMatchObject([
      { status: { code: 0 }, attributes: { ...outcome('unauthorized'), 'http.response.status_code': 401 } },
    ]);
    expect(await readCounts('webhooks')).toEqual([[outcome('unauthorized'), 1]]);
    expect(readExportedText()).not.toMatch(/guessed-secret|whsec/);
  });

  test('failed by a callback → a span with the error type, without the message', async () => {
    await post(makeHandler({ onEvent: () => Promise.reject(new Error(`not ${SECRET}`)) }));
    const attributes = { ...outcome('failed'), 'error.type': 'failed' };
    expect(recorder.spans()).toMatchObject([{ status: { code: 2 }, attributes }]);
    expect(readExportedText()).not.toContain(SECRET);
  });

  test('not done at the deadline → the span ends as an error, and the later report changes nothing', async () => {
    let finish = () => {};
    const waits = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const reported = new Promise<WebhookReport>((onReport) => {
      void post(makeHandler({ onEvent: () => waits, deadlineMs: 20, onReport })).then(() => finish());
    });
    expect(await reported).toMatchObject({ outcome: 'done' });
    expect(recorder.spans()).toMatchObject([{ status: { code: 2 }, attributes: outcome('deadline') }]);
    expect(recorder.spans()[0]?.attributes).not.toHaveProperty('tracking_client.webhook.handled');
  });

  test('a HEAD request → no span, and not counted', async () => {
    const { status } = await makeHandler()(new Request('http://a.test', { method: 'HEAD' }));
    expect([status, recorder.spans(), await readCounts('webhooks')]).toEqual([200, [], []]);
  });
});

describe('the handler', () => {
  test('`onReport` of the user → called with the report', async () => {
    const reports: WebhookReport[] = [];
    await post(makeHandler({ onReport: (report) => reports.push(report) }));
    expect(reports).toMatchObject([{ outcome: 'done', handled: 1 }]);
  });

  test('`onReport` that rejects → the webhook is still done', async () => {
    const onReport = () => Promise.reject(new Error('broken'));
    expect(await post(makeHandler({ onReport }))).toMatchObject({ status: 200 });
  });

  test.each([
    [[createWebhookHandler, { onReport: 5 }], 'Expected `onReport` to be a function, got 5'],
    [[createWebhookHandler, { secret: undefined }], 'Expected `secret` to be a non-empty string'],
    [[createWebhookHandler, {}, { tracerProvider: 5 }], 'Expected `telemetry.tracerProvider` to be a Tracer'],
    [[{}, {}], 'Expected `createHandler` to be `createWebhookHandler`, got an object'],
  ])('%o → refused', ([createHandler, options, telemetry], message) => {
    const args = [createHandler, buildOptions(options), telemetry];
    expect(() => Reflect.apply(tracedWebhookHandler, undefined, args)).toThrow(message);
  });
});

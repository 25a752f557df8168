import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { webhookMetrics } from '../../src/opentelemetry/index.ts';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  type WebhookHandlerOptions,
  WebhookInbox,
  type WebhookReport,
} from '../../src/webhooks/index.ts';
import { buildPayload } from '../integration/webhook-loopback.ts';
import { makeRecorder, type Recorder } from './recorder.ts';

const SECRET = 'whsec-0123456789abcdef';

let recorder: Recorder;
beforeEach(() => {
  recorder = makeRecorder();
});
afterEach(() => recorder.close());

/** Counts the metrics of webhooks that a handler gets one after another. */
async function count({ onEvent }: Pick<WebhookHandlerOptions, 'onEvent'>, ...bodies: string[]) {
  const store = new MemoryDedupeStore();
  const dead = { maxAttempts: 2, onDeadLetter: () => {} };
  const handler = createWebhookHandler({
    secret: SECRET,
    inbox: new WebhookInbox({ store, onError: () => {}, ...dead }),
    metrics: webhookMetrics(recorder.telemetry),
    onEvent,
  });
  for (const body of bodies) {
    const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
    await handler(new Request('http://a.test', { method: 'POST', headers, body }));
  }
  const read = async (name: string, attribute: string) =>
    Object.fromEntries(
      (await recorder.points(`tracking_client.${name}`)).map(({ attributes, value }) => [
        Reflect.get(attributes, `tracking_client.webhook.${attribute}`),
        value,
      ]),
    );
  return { webhooks: await read('webhooks', 'outcome'), events: await read('webhook.events', 'result') };
}

test('a webhook that comes twice → two outcomes, one event handled, one duplicate', async () => {
  expect(await count({ onEvent: () => {} }, buildPayload('e-1'), buildPayload('e-1'))).toEqual({
    webhooks: { done: 2 },
    events: { handled: 1, duplicate: 1 },
  });
});

test('a callback that always fails → one failed event, then one dead letter', async () => {
  const onEvent = () => Promise.reject(new Error(`not ${SECRET}`));
  expect(await count({ onEvent }, buildPayload('e-1'), buildPayload('e-1'))).toEqual({
    webhooks: { failed: 1, done: 1 },
    events: { failed: 1, dead_lettered: 1 },
  });
});

test('nothing to count → no point of the events', async () => {
  const body = '{"trackerId":"t1","events":[]}';
  expect(await count({ onEvent: () => {} }, body)).toEqual({ webhooks: { done: 1 }, events: {} });
});

describe('requests that are refused', () => {
  const post = (body: string, headers: Record<string, string> = {}) =>
    new Request('http://a.test', {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json', ...headers },
      body,
    });

  /** Counts the refused requests by reason and status. */
  async function countRefused(options: Partial<WebhookHandlerOptions>, ...requests: Request[]) {
    const metrics = webhookMetrics(recorder.telemetry);
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const all: WebhookHandlerOptions = { secret: SECRET, metrics, onEvent() {}, logger, ...options };
    const handler = createWebhookHandler(all);
    for (const request of requests) await handler(request);
    await handler.close();
    await handler(post('{}'));
    const points = await recorder.points('tracking_client.webhook.refused');
    return points.map(({ attributes, value }) => [
      Reflect.get(attributes, 'tracking_client.webhook.reason'),
      Reflect.get(attributes, 'http.response.status_code'),
      value,
    ]);
  }

  test.each<[string, Partial<WebhookHandlerOptions>]>([
    ['without onRefused', {}],
    ['with onRefused', { onRefused: () => {} }],
    ['with an onRefused that throws', { onRefused: () => Promise.reject(new Error('no database')) }],
  ])(
    '%s → counted by reason and status; what is handled, and HEAD, are not counted',
    async (_title, options) => {
      const counts = await countRefused(
        options,
        post('{}', { authorization: 'Bearer wrong' }),
        post('{}', { authorization: '' }),
        post('{'),
        post('{}', { 'content-type': 'text/plain' }),
        post('{}', { 'content-length': '99999999' }),
        new Request('http://a.test'),
        new Request('http://a.test', { method: 'HEAD' }),
        post(buildPayload('e-1')),
        post('{}'),
      );
      expect(counts).toEqual([
        ['unauthorized', 401, 2],
        ['invalid_body', 400, 1],
        ['unsupported_media_type', 415, 1],
        ['body_too_long', 413, 1],
        ['method_not_allowed', 405, 1],
        ['closing', 503, 1],
      ]);
    },
  );

  test('a `secret` function that throws → counted with 500', async () => {
    const secret = () => Promise.reject(new Error('no vault'));
    expect(await countRefused({ secret }, post('{}'))).toEqual([['failed', 500, 2]]);
  });

  test('an own onReport beside the metrics → both count', async () => {
    const reports: unknown[] = [];
    const onReport = (report: WebhookReport) => reports.push(report.outcome);
    expect(await countRefused({ onReport }, post('{'), post(buildPayload('e-1')))).toEqual([
      ['invalid_body', 400, 1],
      ['closing', 503, 1],
    ]);
    expect(reports).toEqual(['done']);
  });
});

test('an invalid option → ConfigurationError that names it', () => {
  expect(() => Reflect.apply(webhookMetrics, undefined, [{ meterProvider: 5 }])).toThrow(
    'Expected `telemetry.meterProvider` to be a MeterProvider',
  );
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import { webhookMetrics } from '../../src/opentelemetry/index.ts';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  type WebhookHandlerOptions,
  WebhookInbox,
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
async function count(options: Omit<Partial<WebhookHandlerOptions>, 'store'>, ...bodies: string[]) {
  const store = new MemoryDedupeStore();
  const dead = { maxAttempts: 2, onDeadLetter: () => {} };
  const handler = createWebhookHandler({
    secret: SECRET,
    inbox: new WebhookInbox({ store, onError: () => {}, ...dead }),
    onReport: webhookMetrics(recorder.telemetry),
    ...options,
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

test('an invalid option → ConfigurationError that names it', () => {
  expect(() => Reflect.apply(webhookMetrics, undefined, [{ meterProvider: 5 }])).toThrow(
    'Expected `telemetry.meterProvider` to be a MeterProvider',
  );
});

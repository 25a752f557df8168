import { createServer } from 'node:http';
import { context } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tracedWebhookHandler } from '../../src/opentelemetry/index.ts';
import {
  MemoryDedupeStore,
  toNodeHandler,
  type WebhookHandler,
  type WebhookHandlerOptions,
  WebhookInbox,
  type WebhookReport,
} from '../../src/webhooks/index.ts';
import { listening, payloadOf, type Running } from '../integration/webhook-loopback.ts';
import { settled } from '../support/settled.ts';
import { makeRecorder, type Recorder } from './recorder.ts';

const SECRET = 'whsec-0123456789abcdef';

let recorder: Recorder;
let running: Running | undefined;

beforeEach(() => {
  recorder = makeRecorder();
  context.setGlobalContextManager(recorder.contextManager.enable());
});

afterEach(async () => {
  context.disable();
  await running?.close();
  await recorder.close();
});

function makeHandler(options: Partial<WebhookHandlerOptions> = {}): WebhookHandler {
  return tracedWebhookHandler(
    {
      secret: SECRET,
      inbox: new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} }),
      onEvent: () => {},
      onRefused: () => {},
      ...options,
    },
    recorder.telemetry,
  );
}

/** Posts over loopback, to a server with this handler. */
async function post(handler: WebhookHandler, body: string, init: RequestInit = {}): Promise<Response> {
  running ??= await listening(createServer(toNodeHandler(handler)));
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
  return fetch(`http://127.0.0.1:${running.port}/`, { method: 'POST', body, headers, ...init });
}

afterEach(() => {
  running = undefined;
});

const countOf = async (name: string) =>
  (await recorder.points(`tracking_client.${name}`)).map(({ attributes, value }) => [attributes, value]);
const outcome = (name: string) => ({ 'tracking_client.webhook.outcome': name });

describe('a webhook that is', () => {
  test('handled → a server span with its outcome, counted; its response is as it was', async () => {
    const response = await post(makeHandler(), payloadOf('e-1'));
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
    expect(await countOf('webhooks')).toEqual([[outcome('done'), 1]]);
    expect(await countOf('webhook.duplicates')).toEqual([]);
  });

  test('handled by a callback with spans of its own → they are children, also after a wait', async () => {
    const handler = async () => {
      await settled();
      recorder.tracer.startActiveSpan('save the event', (span) => span.end());
    };
    await post(makeHandler({ onEvent: handler }), payloadOf('e-1'));
    const [saved, webhook] = recorder.spans();
    expect([saved?.name, webhook?.name]).toEqual(['save the event', 'process webhook']);
    expect(saved?.parentSpanContext?.spanId).toBe(webhook?.spanContext().spanId);
  });

  test('taken in inside a span of the server → its child', async () => {
    const handler = makeHandler();
    const headers = { authorization: `Bearer ${SECRET}` };
    await recorder.tracer.startActiveSpan('POST /webhooks', async (span) => {
      await handler(new Request('http://a.test', { method: 'POST', headers, body: payloadOf('e-1') }));
      span.end();
    });
    const [webhook, serverSpan] = recorder.spans();
    expect(webhook?.parentSpanContext?.spanId).toBe(serverSpan?.spanContext().spanId);
    expect(webhook?.kind).toBe(0);
  });

  test('sent twice → the second is done as well, with one duplicate, which is counted', async () => {
    const handler = makeHandler();
    await post(handler, payloadOf('e-1'));
    await post(handler, payloadOf('e-1'));
    const told = recorder
      .spans()
      .map(({ attributes }) => [
        attributes['tracking_client.webhook.handled'],
        attributes['tracking_client.webhook.duplicates'],
      ]);
    expect(told).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(await countOf('webhooks')).toEqual([[outcome('done'), 2]]);
    expect(await countOf('webhook.duplicates')).toEqual([[{}, 1]]);
  });

  test('refused for its secret → its outcome and no error; the secret in no attribute', async () => {
    await post(makeHandler(), payloadOf('e-1'), { headers: { authorization: 'Bearer guessed-secret' } });
    expect(recorder.spans()).toMatchObject([
      { status: { code: 0 }, attributes: { ...outcome('unauthorized'), 'http.response.status_code': 401 } },
    ]);
    expect(await countOf('webhooks')).toEqual([[outcome('unauthorized'), 1]]);
    const text = JSON.stringify(
      recorder.spans().map(({ attributes, events, status }) => [attributes, events, status]),
    );
    expect(text).not.toMatch(/guessed-secret|whsec/);
  });

  test('no JSON → its outcome', async () => {
    await post(makeHandler(), '{');
    expect(await countOf('webhooks')).toEqual([[outcome('invalid_body'), 1]]);
  });

  test('failed by a callback → an error without its words', async () => {
    const handler = () => Promise.reject(new Error(`not ${SECRET}`));
    await post(makeHandler({ onEvent: handler }), payloadOf('e-1'));
    const [span] = recorder.spans();
    expect(span).toMatchObject({
      status: { code: 2 },
      attributes: { ...outcome('failed'), 'error.type': 'failed' },
    });
    expect(JSON.stringify([span?.attributes, span?.events, span?.status])).not.toContain(SECRET);
    expect(await countOf('webhooks')).toEqual([[outcome('failed'), 1]]);
  });

  test('answered at the deadline → ended then, as an error; what is reported later changes nothing', async () => {
    let finish = () => {};
    const waits = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const reported = new Promise<WebhookReport>((onReport) => {
      void post(makeHandler({ onEvent: () => waits, deadlineMs: 20, onReport }), payloadOf('e-1')).then(() =>
        finish(),
      );
    });
    expect(await reported).toMatchObject({ outcome: 'done' });
    expect(recorder.spans()).toMatchObject([{ status: { code: 2 }, attributes: outcome('deadline') }]);
    expect(recorder.spans()[0]?.attributes).not.toHaveProperty('tracking_client.webhook.handled');
  });

  test('only a HEAD → no span, and not counted', async () => {
    const { status } = await makeHandler()(new Request('http://a.test', { method: 'HEAD' }));
    expect(status).toBe(200);
    expect(recorder.spans()).toEqual([]);
    expect(await countOf('webhooks')).toEqual([]);
  });
});

describe('the handler', () => {
  test('`onReport` of the user → told as well', async () => {
    const reports: WebhookReport[] = [];
    await post(makeHandler({ onReport: (report) => reports.push(report) }), payloadOf('e-1'));
    expect(reports).toMatchObject([{ outcome: 'done', handled: 1 }]);
  });

  test('`onReport` that throws → the webhook is done all the same', async () => {
    const onReport = () => {
      throw new Error('broken');
    };
    expect((await post(makeHandler({ onReport }), payloadOf('e-1'))).status).toBe(200);
  });

  test('closed → refuses, and says so', async () => {
    const handler = makeHandler();
    await handler.close();
    await post(handler, payloadOf('e-1'));
    expect(await countOf('webhooks')).toEqual([[outcome('closing'), 1]]);
  });

  test.each([
    [{ onReport: 5 }, {}, 'Expected `onReport` to be a function, got 5'],
    [
      { secret: undefined },
      {},
      'Expected `secret` to be a non-empty string, a list of them, a function, or false, got undefined',
    ],
    [{}, { tracerProvider: 5 }, 'Expected `telemetry.tracerProvider` to be a TracerProvider, got 5'],
  ])('%o, %o → refused', (options, telemetry, message) => {
    const given = {
      secret: SECRET,
      inbox: new WebhookInbox({ store: new MemoryDedupeStore() }),
      onEvent: () => {},
      ...options,
    };
    expect(() => Reflect.apply(tracedWebhookHandler, undefined, [given, telemetry])).toThrow(message);
  });
});

import { deepEqual } from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import fc from 'fast-check';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  toNodeHandler,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import { SECRET } from '../webhooks/make-handler.ts';
import { must, property } from './harness.ts';

const events = fc.oneof(
  fc.array(fc.record({ eventId: fc.constantFrom<unknown>('e1', 'e2', '', null, 5) }, { requiredKeys: [] }), {
    maxLength: 3,
  }),
  fc.constantFrom<unknown>(null, {}, 'none'),
);
const tracker = fc.record(
  { trackerId: fc.constantFrom<unknown>('t1', 't2', null, 7), isTracked: fc.constantFrom(true, false, null) },
  { requiredKeys: [] },
);
/** Every field that a webhook, a result, an update of a poll or a list of these can have, in any combination. */
const item = fc.record(
  {
    metadata: fc.constantFrom<unknown>(null, {}, { topic: 'tracking/events' }, { topic: 'tracking/new' }),
    tracker,
    trackerId: fc.constant('t3'),
    shipment: fc.constant({}),
    events,
    statistics: fc.constant({}),
    newEvents: events,
    keys: fc.constant([]),
    tracking: fc.record({ tracker, events }),
    poll: fc.constant(1),
    stopped: fc.boolean(),
    error: fc.constantFrom<unknown>('failed', { name: 'TrackingError' }),
  },
  { requiredKeys: [] },
);
const body = fc.oneof(
  { weight: 5, arbitrary: item },
  fc.record({ trackings: fc.oneof(fc.array(item, { maxLength: 3 }), fc.constantFrom<unknown>(null, {})) }),
  fc.array(item, { maxLength: 2 }),
  item.map((value) => JSON.stringify(value)),
  fc.constantFrom<unknown>(5, null, true),
);

/** The four ways in which a body comes to the handler: read by it, or by a parser that kept text, bytes or the parsed value. */
const WAYS: Record<string, (json: string) => { readonly body?: unknown }> = {
  raw: () => ({}),
  text: (json) => ({ body: json }),
  bytes: (json) => ({ body: Buffer.from(json) }),
  parsed: (json) => ({ body: JSON.parse(json) }),
};

async function makeRequest(json: string, isRead: boolean): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', url: '/', headers });
  request.push(json);
  request.push(null);
  if (isRead) await once(request.resume(), 'end');
  return request;
}

/** Records the calls of all callbacks; the time at which something was received is no part of the answer. */
function makeCallbacks() {
  const calls: unknown[] = [];
  const callbacks = {
    onEvent: (event: object, { message, key }: { message: object; key: string }) =>
      void calls.push(['onEvent', key, event, message]),
    onOther: (message: object) => void calls.push(['onOther', message]),
  };
  return { calls, callbacks };
}

async function receive(json: string, way: keyof typeof WAYS) {
  const { calls, callbacks } = makeCallbacks();
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} });
  const webhooks = createWebhookHandler({ secret: SECRET, inbox, onRefused: () => {}, ...callbacks });
  const parsed = WAYS[way]?.(json) ?? {};
  const request = Object.assign(await makeRequest(json, way !== 'raw'), parsed);
  const response = new ServerResponse(request);
  await toNodeHandler(webhooks)(request, response);
  return { status: response.statusCode, calls };
}

async function process(given: unknown) {
  const { calls, callbacks } = makeCallbacks();
  const inbox = new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} });
  const report = await inbox.process(given, callbacks).catch((error: unknown) => String(error));
  return { report, calls };
}

/** A body of any form gets the same answer and makes the same calls as text, as bytes and parsed, whoever has read it. */
export const bodyForms = property('body-forms', 100, body, async () => ({
  async check(value) {
    const json = JSON.stringify(value);
    const raw = await receive(json, 'raw');
    must([200, 422].includes(raw.status), () => `a ${raw.status}`);
    for (const way of ['text', 'bytes', 'parsed']) deepEqual(await receive(json, way), raw);
    const parsed = await process(JSON.parse(json));
    deepEqual(await process(json), parsed);
    deepEqual(await process(Buffer.from(json)), parsed);
  },
  async stop() {},
}));

import { createServer } from 'node:http';
import fc from 'fast-check';
import { TrackingClient } from '../../src/client.ts';
import { endpoints } from '../../src/endpoints.ts';
import { TrackingError } from '../../src/errors.ts';
import { checkResponse } from '../../src/schemas/envelope.ts';
import { trackingSchema } from '../../src/schemas/tracking.ts';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  toNodeHandler,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import { listening, makeClient, SECRET } from '../integration/webhook-loopback.ts';
import { API_KEY } from '../support/make-client.ts';
import { nested } from './bodies.ts';
import { must, printed } from './must.ts';
import { property } from './property.ts';
import { startRawServer } from './raw-server.ts';

const MIB = 2 ** 20;
const EVENTS = 20_000;

/** Bodies that are too large to keep in a corpus, as responses and as webhooks; `webhook` is the status that is due. */
const BODIES: readonly {
  readonly name: string;
  readonly body: () => string;
  readonly webhook: number;
  readonly handled?: number;
}[] = [
  { name: '50 MB of spaces', body: () => ' '.repeat(50 * MIB), webhook: 413 },
  { name: '50 MB of one text', body: () => `{"data":{"couriers":"${'x'.repeat(50 * MIB)}"}}`, webhook: 413 },
  {
    name: '9 MB that echo the key',
    body: () => `{"errors":[{"code":"${API_KEY.repeat(400_000)}"}]}`,
    webhook: 422,
  },
  { name: 'nested 100,000 deep', body: () => nested(100_000), webhook: 422 },
  {
    name: 'an event nested 100,000 deep, without an id',
    body: () => `{"trackerId":"t","events":[{"raw":${nested(100_000)}}]}`,
    webhook: 200,
    handled: 1,
  },
  {
    name: 'many events',
    body: () =>
      JSON.stringify({
        trackerId: 't',
        events: Array.from({ length: EVENTS }, (_, index) => ({ eventId: `e${index}` })),
      }),
    webhook: 200,
    handled: EVENTS,
  },
  {
    name: 'many items that are none',
    body: () =>
      JSON.stringify({ data: { couriers: Array(500_000).fill(1) }, trackings: Array(500_000).fill(1) }),
    webhook: 422,
  },
  { name: '8 MiB of numbers as couriers', body: () => couriersBody('0', 8), webhook: 200 },
  { name: '64 MiB of numbers as couriers', body: () => couriersBody('0', 64), webhook: 413 },
  // Not 64 MiB, because `JSON.parse` alone may take half a minute for 22 million objects.
  { name: '8 MiB of objects without fields as couriers', body: () => couriersBody('{}', 8), webhook: 400 },
  {
    name: 'a number of a million digits',
    body: () => `{"data":${'9'.repeat(1_000_000)},"trackings":[]}`,
    webhook: 200,
  },
  {
    name: 'a key given 300,000 times',
    body: () => `{${'"data":[],'.repeat(300_000)}"trackings":[]}`,
    webhook: 200,
  },
];

function couriersBody(item: string, mib: number): string {
  const items = `${item},`.repeat(Math.floor((mib * MIB) / (item.length + 1)));
  return `{"data":{"couriers":[${items}${item}]},"trackings":[]}`;
}

/** Bounds for a list of wrong items, beyond what `JSON.parse` takes. */
const MAX_CHECK_MS = 2_000;
const MAX_CHECK_HEAP_BYTES = 300e6;

/** Checks 64 MiB of such items as every list that a response can hold, within bounds of CPU time and memory. */
function checkLists(item: '0' | '{}'): void {
  const length = (64 * MIB) / (item.length + 1);
  const items: unknown[] = Array.from({ length }, () => (item === '0' ? 0 : {}));
  // Once only, because a collection walks 22 million objects.
  globalThis.gc?.();
  for (const [name, schema, payload] of [
    ['couriers', endpoints['couriers.list'].response.schema, items],
    ['trackers', endpoints['trackers.list'].response.schema, items],
    ['results', endpoints['trackers.resultsByTrackingNumber'].response.schema, items],
    ['events', trackingSchema, { events: items }],
    ['bulk', endpoints['trackers.createBulk'].response.schema, { status: 'success', data: items }],
    ['webhooks', endpoints['trackers.webhookHistory'].response.schema, { webhooks: items }],
  ] as const) {
    const heapBytes = process.memoryUsage().heapUsed;
    let issues = 0;
    const startedAt = performance.now();
    const tookMs = cpuMs(() => {
      issues = checkResponse<unknown>(schema, payload, 'keep').mismatched.length;
    });
    const wallMs = performance.now() - startedAt;
    const usedBytes = process.memoryUsage().heapUsed - heapBytes;
    must(issues > 0 && issues <= 20, () => `${name}: ${issues} issues`);
    must(tookMs < MAX_CHECK_MS, () => `${name}: the check took ${tookMs} ms of CPU, ${wallMs} ms in all`);
    must(usedBytes < MAX_CHECK_HEAP_BYTES, () => `${name}: the check used ${usedBytes} bytes`);
  }
}

/** The CPU time of a run: other programs on the machine do not count. */
function cpuMs(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const TIMEOUT_MS = 30_000;
const SLACK_MS = 15_000;
const MAX_ANSWER_BYTES = 65 * MIB;

export const huge = property(
  'huge',
  'responses and webhooks of up to 64 MiB, nested 100,000 deep, of a million parts: in time, and bounded',
  1,
  fc.record({ index: fc.nat(BODIES.length - 1), status: fc.constantFrom(200, 200, 404, 500) }),
  async () => {
    const server = await startRawServer();
    const client = new TrackingClient({
      baseUrl: server.origin,
      apiKey: API_KEY,
      rateLimit: false,
      retry: false,
      logLevel: 'silent',
      timeoutMs: TIMEOUT_MS,
      maxResponseBytes: MAX_ANSWER_BYTES,
    });
    let handled = 0;
    const receiver = createWebhookHandler({
      secret: SECRET,
      inbox: new WebhookInbox({ store: new MemoryDedupeStore(), onError: () => {} }),
      onEvent: () => {
        handled += 1;
      },
    });
    const running = await listening(createServer(toNodeHandler(receiver)));

    async function checkAnswer(body: string, status: number): Promise<void> {
      const head = `HTTP/1.1 ${status} OK\r\nconnection: close\r\ncontent-type: application/json\r\n`;
      server.answer = {
        bytes: Buffer.from(`${head}content-length: ${body.length}\r\n\r\n${body}`),
        ending: 'end',
      };
      const error = await client.couriers.list().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      must(error === undefined || error instanceof TrackingError, () => printed(error).slice(0, 2_000));
      must(
        error !== undefined || (status === 200 && body.length < MAX_ANSWER_BYTES),
        () => 'was taken for a result',
      );
      must(error === undefined || !printed(error).includes(API_KEY), () => 'shows the key');
    }

    async function checkWebhook(body: string, due: number, count: number): Promise<void> {
      const sender = makeClient(running.port);
      for (const [expected, headers] of [
        [due, { 'content-length': String(body.length) }],
        [due, {}],
      ] as const) {
        const parts = body.length > MIB ? [body.slice(0, MIB), body.slice(MIB)] : [body];
        const { status } = await sender.send({ chunks: parts, headers, fresh: true });
        must(status === expected, () => `answered with ${status}, not ${expected}`);
      }
      sender.close();
      // The second time all of it is known.
      must(handled === count, () => `handled ${handled} of ${count}`);
    }

    return {
      async check({ index, status }) {
        const { name, body, webhook, handled: count = 0 } = BODIES[index] ?? BODIES[0] ?? missing();
        const text = body();
        handled = 0;
        if (/ as couriers$/.test(name)) checkLists(name.includes('numbers') ? '0' : '{}');
        const startedAt = performance.now();
        await checkAnswer(text, status);
        await checkWebhook(text, webhook, count);
        const tookMs = performance.now() - startedAt;
        must(tookMs < TIMEOUT_MS + SLACK_MS, () => `took ${tookMs} ms`);
      },
      async stop() {
        await running.close();
        await server.stop();
      },
    };
  },
);

function missing(): never {
  throw new Error('no body');
}

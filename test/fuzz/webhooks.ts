import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { TrackingError } from '../../src/errors.ts';
import {
  createWebhookHandler,
  MemoryDedupeStore,
  type WebhookHandler,
  WebhookInbox,
} from '../../src/webhooks/index.ts';
import * as samples from '../contract/support/samples.ts';
import { HOSTS } from '../integration/webhook-hosts.ts';
import { makeClient, type Running, SECRET } from '../integration/webhook-loopback.ts';
import type { Made } from '../support/made.ts';
import { brokenBody, isObject, parseJson } from './bodies.ts';
import { must, printed, property } from './harness.ts';

const DEADLINE_MS = 3_000;
const SLACK_MS = 10_000;
const MAX_BODY_BYTES = 2 ** 20;

const id = fc.oneof(
  fc.constantFrom('e-1', 'e-2', 'e-3', '', ':', '%', 'a:b', 'é', '\u0000', 'sha256:x'),
  fc.string({ maxLength: 8 }),
);
const events = fc.array(
  fc.record({ eventId: id, occurrenceDatetime: fc.constantFrom('2021-03-04', '2021-03-04T17:12:57Z') }),
  {
    maxLength: 5,
  },
);
const item = fc.record({ tracker: fc.record({ trackerId: id }), events });
const good = fc.oneof(
  fc.record({ trackings: fc.array(item, { maxLength: 4 }) }),
  fc.record({ trackerId: id, events }),
);

/** Webhooks with every documented field. */
const DOCUMENTED = [samples.ENVELOPED_WEBHOOK, samples.PROOF_WEBHOOK, samples.FLAT_WEBHOOK];
const TEXTS = [
  '\uFEFF{"trackings":[{"tracker":{"trackerId":"t-1"},"events":[{"eventId":"e-1","order":1e400}]}]}',
  '{"trackings":[],"trackings":[{"tracker":{"trackerId":"t-1","trackerId":"t-2"},"events":[{"eventId":"a","eventId":"b"}]}]}',
  '{"trackings":[{"tracker":{"trackerId":"t-1"},"events":[{"eventId":"e-1"},{"eventId":7},null]},{"tracker":{}},null]}',
];

const request = fc.record({
  host: fc.constantFrom(...HOSTS.keys()),
  body: fc.oneof(
    {
      weight: 1,
      arbitrary: good.map((value) => ({ isGood: true, bytes: Buffer.from(JSON.stringify(value)) })),
    },
    {
      weight: 4,
      arbitrary: brokenBody(fc.oneof(good, fc.constantFrom(...DOCUMENTED)), TEXTS).map((bytes) => ({
        isGood: false,
        bytes,
      })),
    },
  ),
  isLengthAnnounced: fc.boolean(),
  /** Every n-th event fails when it comes for the first time. */
  failsEvery: fc.constantFrom(undefined, undefined, 1, 2, 3),
});
type Sent = Made<typeof request>;

/** Reads the events that must be handled before a 2xx, independently of the parser. */
function readEventIds(payload: unknown): { readonly ids: string[]; readonly hasBroken: boolean } {
  if (!isObject(payload)) return { ids: [], hasBroken: true };
  const items = Object.hasOwn(payload, 'trackings') ? payload['trackings'] : [payload];
  if (!Array.isArray(items)) return { ids: [], hasBroken: true };
  let hasBroken = false;
  const ids = items.flatMap((item): string[] => {
    const { metadata, events: list } = Object(item);
    const topic = isObject(metadata) ? metadata['topic'] : undefined;
    // Other topics have no known events.
    if (isObject(item) && typeof topic === 'string' && topic !== '' && topic !== 'tracking/events') return [];
    if (!isObject(item) || !Array.isArray(list)) hasBroken = true;
    return (Array.isArray(list) ? list : []).flatMap((event) => {
      const eventId = isObject(event) ? (event['eventId'] ?? undefined) : 0;
      if (eventId !== undefined && typeof eventId !== 'string') hasBroken = true;
      return typeof eventId === 'string' && eventId !== '' ? [eventId] : [];
    });
  });
  return { ids, hasBroken };
}

/** A receiver that records all calls of a run. */
class Receiver {
  readonly handledIds = new Set<string>();
  readonly timesHandled = new Map<string, number>();
  readonly #tried = new Set<string>();
  readonly #seen: unknown[] = [];
  readonly webhooks: WebhookHandler;

  constructor(failsEvery: number | undefined) {
    const note = (...what: unknown[]) => void this.#seen.push(what);
    const handle = (key: string) => {
      const isFirst = !this.#tried.has(key);
      this.#tried.add(key);
      if (isFirst && failsEvery !== undefined && this.#tried.size % failsEvery === 0)
        throw new Error('not yet');
      this.timesHandled.set(key, (this.timesHandled.get(key) ?? 0) + 1);
    };
    this.webhooks = createWebhookHandler({
      secret: SECRET,
      inbox: new WebhookInbox({ store: new MemoryDedupeStore(), onError: note }),
      maxBodyBytes: MAX_BODY_BYTES,
      deadlineMs: DEADLINE_MS,
      onEvent: async ({ eventId }, { key }) => {
        handle(key);
        if (typeof eventId === 'string') this.handledIds.add(eventId);
      },
      onProofOfDelivery: (_, { key }) => handle(key),
      onOther: () => {},
      onReport: note,
      onRefused: note,
    });
  }

  /** Fails when an event was handled twice, or when a secret would be logged. */
  check(): void {
    const twice = [...this.timesHandled].filter(([, times]) => times > 1);
    must(twice.length === 0, () => `handled more than once: ${printed(twice)}`);
    const refusals = this.#seen.map((what) =>
      Array.isArray(what) ? what.filter((part) => !(part instanceof Request)) : what,
    );
    must(!printed(refusals).includes(SECRET), () => `shows the secret: ${printed(refusals)}`);
    const errors = refusals.flat().filter((part): part is Error => part instanceof Error);
    must(
      errors.every((error) => error instanceof TrackingError || error.message === 'not yet'),
      () => printed(errors),
    );
  }
}

interface Received {
  readonly status: number;
  readonly text: string;
}

/** Any bytes as a webhook get a 2xx from Express, Fastify, Hono and node:http only if every event was handled once. */
export const webhooks = property('webhooks', 150, request, async () => {
  let receiver = new Receiver(undefined);
  const current = (received: Request) => receiver.webhooks(received);
  const handler: WebhookHandler = Object.assign(current, { close: () => receiver.webhooks.close() });
  const running: Running[] = [];
  for (const { start } of HOSTS) running.push(await start(handler));

  async function send(sent: Sent): Promise<Received> {
    const client = makeClient(running[sent.host]?.port ?? 0);
    const { bytes } = sent.body;
    const headers = {
      authorization: `Bearer ${SECRET}`,
      'content-type': 'application/json',
      ...(sent.isLengthAnnounced && { 'content-length': String(bytes.length) }),
    };
    try {
      return await client.send({ method: 'POST', headers, chunks: [bytes], fresh: true });
    } catch (error) {
      // A host that responds before the whole body is sent may close the connection, and the response is lost.
      return { status: 0, text: String(error) };
    } finally {
      client.close();
    }
  }

  function checkResponse(sent: Sent, { status, text }: Received): void {
    must(!text.includes(SECRET), () => `shows the secret: ${text}`);
    receiver.check();
    if (status < 200 || status > 299) return;
    // The host's own body parser may replace invalid bytes.
    const isParsed = HOSTS[sent.host]?.parses === true;
    must(isParsed || isUtf8(sent.body.bytes), () => 'invalid UTF-8 was taken');
    const { ids, hasBroken } = readEventIds(parseJson(sent.body.bytes));
    must(!hasBroken, () => `responded with ${status}, though a part of it is lost`);
    const lost = ids.filter((eventId) => !receiver.handledIds.has(eventId));
    must(lost.length === 0, () => `responded with ${status}, and never handled: ${printed(lost)}`);
  }

  return {
    async check(sent) {
      receiver = new Receiver(sent.failsEvery);
      const responses: Received[] = [];
      // Three attempts are enough, because each event fails at most once.
      for (let count = 0; count < 3; count += 1) {
        const startedAt = performance.now();
        const received = await send(sent);
        const tookMs = performance.now() - startedAt;
        must(tookMs < DEADLINE_MS + SLACK_MS, () => `took ${tookMs} ms`);
        checkResponse(sent, received);
        responses.push(received);
      }
      const isAccepted = responses.at(-1)?.status === 200;
      must(!sent.body.isGood || isAccepted, () => `a good webhook: ${printed(responses)}`);
      await receiver.webhooks.close();
    },
    async stop() {
      for (const { close } of running) await close();
    },
  };
});

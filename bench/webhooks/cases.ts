import { buildEventKeys } from '../../src/events/keys.ts';
import { MemoryDedupeStore, parseWebhook, WebhookInbox } from '../../src/webhooks/index.ts';
import { median } from '../statistics.ts';
import { heldBytes, microsecondsPerCall } from './measure.ts';
import { EVENTS_PER_TRACKING, webhookBody } from './payload.ts';

const ROUNDS = 15;
const EVENTS_PER_ROUND = 60_000;

/** Time of `parseWebhook` against bare `JSON.parse` of the same text, rounds interleaved. */
export function parseCase(trackings: number) {
  const text = webhookBody(trackings);
  const calls = Math.ceil(6_000 / trackings);
  const samples: { bare: number; ours: number }[] = [];
  for (let round = -3; round < ROUNDS; round += 1) {
    const bare = microsecondsPerCall(() => JSON.parse(text), calls);
    const ours = microsecondsPerCall(() => parseWebhook(text), calls);
    if (round >= 0) samples.push({ bare, ours }); // The rounds before that warm both up.
  }
  return {
    trackings,
    bytes: text.length,
    bareMicroseconds: median(samples.map(({ bare }) => bare)),
    parseMicroseconds: median(samples.map(({ ours }) => ours)),
    ratio: median(samples.map(({ bare, ours }) => ours / bare)),
  };
}

/** Runs bodies of events that were never seen, and tells how many events a second went through. */
async function eventsPerSecond(trackings: number, processBodies: (bodies: string[]) => Promise<void>) {
  const rates: number[] = [];
  const perBody = trackings * EVENTS_PER_TRACKING;
  for (let round = -1; round < 5; round += 1) {
    const bodies = Array.from({ length: Math.ceil(EVENTS_PER_ROUND / perBody) }, (_, index) =>
      webhookBody(trackings, index * trackings),
    );
    const startedAt = performance.now();
    await processBodies(bodies);
    const seconds = (performance.now() - startedAt) / 1000;
    if (round >= 0) rates.push((bodies.length * perBody) / seconds);
  }
  return median(rates);
}

/** The keys of all events of a webhook. */
function eventKeys(body: string): string[] {
  return parseWebhook(body).messages.flatMap((message) =>
    message.kind === 'events' ? message.events.map(buildEventKeys(message)) : [],
  );
}

/** Parse, claim and commit on the memory store, nothing else. */
export function storeCase(trackings: number) {
  return eventsPerSecond(trackings, async (bodies) => {
    const store = new MemoryDedupeStore();
    for (const [index, body] of bodies.entries()) {
      const keys = eventKeys(body);
      await store.claim(keys, { token: String(index), leaseMs: 60_000 });
      await store.commit(keys, { retainMs: 30 * 86_400_000 });
    }
  });
}

/** The same through `WebhookInbox`: ordering, a claim before each event, heartbeat and report included. */
export function inboxCase(trackings: number) {
  return eventsPerSecond(trackings, async (bodies) => {
    const inbox = new WebhookInbox({ store: new MemoryDedupeStore() });
    for (const body of bodies) {
      const { outcome } = await inbox.process(body, () => {});
      if (outcome !== 'done') throw new Error(`Expected every webhook to be done, got ${outcome}`);
    }
  });
}

/** What a million remembered keys cost, and what another half million on top of them adds. */
export async function memoryCase(maxKeys: number) {
  const store = new MemoryDedupeStore({ maxKeys });
  const remember = async (first: number, count: number) => {
    for (let seed = first; seed < first + count; seed += 100) {
      const keys = eventKeys(webhookBody(34, seed)).slice(0, 100);
      await store.claim(keys, { token: String(seed), leaseMs: 60_000 });
      await store.commit(keys, { retainMs: 30 * 86_400_000 });
    }
  };
  await remember(0, 1_000);
  const { size: sizeBefore } = store;
  const before = heldBytes();
  await remember(1_000, maxKeys - 1_000);
  const bytesPerKey = (heldBytes() - before) / (store.size - sizeBefore);
  await remember(maxKeys, maxKeys / 2);
  return {
    maxKeys,
    bytesPerKey,
    keysAfterHalfAsManyMore: store.size,
    bytesPerKeyAfter: (heldBytes() - before) / (store.size - sizeBefore),
  };
}

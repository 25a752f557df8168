import { webhooks } from '../built.ts';
import { usedHeapBytes } from '../heap.ts';
import { formatCount, median } from '../statistics.ts';
import { buildBody, EVENTS_PER_TRACKING } from './payload.ts';

const { MemoryDedupeStore, parseWebhook, WebhookInbox } = webhooks;
const SIZES = [1, 20, 200];
const EVENTS_PER_ROUND = 60_000;

function measureMicroseconds(call: () => unknown, calls: number): number {
  const startedAt = performance.now();
  for (let index = 0; index < calls; index += 1) call();
  return ((performance.now() - startedAt) * 1000) / calls;
}

/** Compares `parseWebhook` with bare `JSON.parse` of the same text, in turns. */
function measureParsing(trackings: number, rounds: number): string[] {
  const text = buildBody(trackings, 0);
  const calls = Math.ceil(6_000 / trackings);
  const samples = Array.from({ length: rounds + 3 }, () => ({
    bare: measureMicroseconds(() => JSON.parse(text), calls),
    ours: measureMicroseconds(() => parseWebhook(text), calls),
  })).slice(3); // The first rounds warm both up.
  const [bare, ours] = [median(samples.map((each) => each.bare)), median(samples.map((each) => each.ours))];
  const ratio = median(samples.map((each) => each.ours / each.bare));
  return [
    `\`parseWebhook\` / \`JSON.parse\`, ${formatCount(text.length)} bytes`,
    '<= 2.0x',
    `${ratio.toFixed(2)}x (${ours.toFixed(1)} / ${bare.toFixed(1)} µs)`,
  ];
}

async function processAll(bodies: readonly string[], inbox: InstanceType<typeof WebhookInbox>) {
  for (const body of bodies) {
    const { outcome } = await inbox.process(body, () => {});
    if (outcome !== 'done') throw new Error(`Expected every webhook to be done, got ${outcome}`);
  }
}

/** Measures how many unseen events per second an inbox handles on one core. */
async function measureThroughput(trackings: number, rounds: number): Promise<string[]> {
  const rates: number[] = [];
  const perBody = trackings * EVENTS_PER_TRACKING;
  for (let round = -1; round < rounds; round += 1) {
    const bodies = Array.from({ length: Math.ceil(EVENTS_PER_ROUND / perBody) }, (_, index) =>
      buildBody(trackings, index * trackings),
    );
    const startedAt = performance.now();
    await processAll(bodies, new WebhookInbox({ store: new MemoryDedupeStore() }));
    const seconds = (performance.now() - startedAt) / 1000;
    if (round >= 0) rates.push((bodies.length * perBody) / seconds); // The round before that warms up.
  }
  const name = `\`WebhookInbox.process\`, memory store, ${perBody} events a webhook`;
  return [name, '', `${formatCount(median(rates))} events/s`];
}

/** Measures the bytes of a remembered key in a full store, and again after half as many keys more. */
async function measureMemory(maxKeys: number): Promise<string[][]> {
  const store = new MemoryDedupeStore({ maxKeys });
  const inbox = new WebhookInbox({ store });
  let seed = 0;
  const remember = async (keys: number) => {
    const trackings = 100;
    for (const endsAt = seed + keys / EVENTS_PER_TRACKING; seed < endsAt; seed += trackings)
      await processAll([buildBody(trackings, seed)], inbox);
  };
  // The first keys pay for compiled code.
  await remember(10_000);
  const [sizeBefore, heapBefore] = [store.size, await usedHeapBytes()];
  const measureBytesPerKey = async () => ((await usedHeapBytes()) - heapBefore) / (store.size - sizeBefore);
  await remember(maxKeys - sizeBefore);
  const full = await measureBytesPerKey();
  await remember(maxKeys / 2);
  const overfull = await measureBytesPerKey();
  const keys = `${formatCount(maxKeys)} keys`;
  return [
    [`memory store, ${keys}`, '<= 250 bytes a key', `${formatCount(full)} bytes a key`],
    [
      `the same after ${formatCount(maxKeys / 2)} more`,
      keys,
      `${formatCount(store.size)} keys, ${formatCount(overfull)} bytes each`,
    ],
  ];
}

/** Returns rows with the case, its target and the measurement. */
export async function measureCosts(isQuick: boolean): Promise<string[][]> {
  const rows = SIZES.map((trackings) => measureParsing(trackings, isQuick ? 3 : 15));
  for (const trackings of SIZES) rows.push(await measureThroughput(trackings, isQuick ? 1 : 5));
  return [...rows, ...(await measureMemory(isQuick ? 100_000 : 1_000_000))];
}

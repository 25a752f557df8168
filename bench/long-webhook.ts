/**
 * Measures the processor time of one webhook with 105,000 events, a `MemoryDedupeStore` and a callback that does nothing. Parsing
 * is synchronous, so its time is shown on its own. `npm run prepare && npx tsx bench/long-webhook.ts` only prints.
 */
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { webhooks } from './built.ts';

const EVENTS = 105_000;
const ROUNDS = 5;
const SECRET = 'whsec-1';

const body = Buffer.from(
  JSON.stringify({
    trackerId: 't1',
    events: Array.from({ length: EVENTS }, (_, index) => ({ eventId: `e${index}` })),
  }),
);

/** Returns the processor time of `work` in milliseconds, those of all threads of this process together. */
async function measure(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

async function handle(onEvent: () => unknown): Promise<void> {
  const handler = webhooks.createWebhookHandler({
    secret: SECRET,
    store: new webhooks.MemoryDedupeStore(),
    maxBodyBytes: body.byteLength,
    // Long enough for a busy machine.
    deadlineMs: 600_000,
    onEvent,
  });
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
  const response = await handler(new Request('http://localhost/', { method: 'POST', headers, body }));
  if (response.status !== 200) throw new Error(`Expected the status to be 200, got ${response.status}`);
}

const CASES: readonly (readonly [name: string, work: () => unknown])[] = [
  ['empty callback', () => handle(() => {})],
  ['empty async callback', () => handle(async () => {})],
  ['only `parseWebhook`', () => webhooks.parseWebhook(body)],
];
const rows: string[][] = [];
for (const [name, work] of CASES) {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await measure(work));
  const [first = 0] = times;
  rows.push([
    name,
    ...[first, Math.min(...times), Math.max(...times)].map((time) => `${time.toFixed(0)} ms`),
  ]);
}
console.log(`${EVENTS} events, ${body.byteLength} bytes`);
console.log(markdownTable(['Webhook', 'First round', 'Least', 'Most'], rows));

// Webhooks through each store against a receiver written by hand for the same store: the header checked, the body parsed,
// one insert or `SET NX`, an answer. Both in turns, 64 requests at a time, events that nobody has seen; medians.
import { mkdir, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { writeReadmeSection } from './readme-section.ts';
import { measureReceivers, openReceivers, type ReceiverResult } from './webhooks/receivers.ts';
import { machine } from './webhooks-stores/report.ts';

const { cases, close } = await openReceivers({
  redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379',
  postgresUrl: process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test',
});
const load = loadavg()[0]?.toFixed(1);
const results: ReceiverResult[] = [];
for (const each of cases) {
  for (const [events, copies] of [
    [1, 1],
    [2, 1],
    [1, 3],
    [2, 3],
  ] as const) {
    const webhooks = each.name.includes('Memory') ? 4_000 : 1_000;
    results.push(await measureReceivers(each, events, copies, webhooks));
  }
}
await close();

const whole = (value: number) => Math.round(value).toLocaleString('en-US');
const rows = results.map(
  ({ name, eventsPerWebhook, copies, must, ours, byHand, ratio }) =>
    `| ${name} | ${eventsPerWebhook} | ${copies} | ${whole(byHand)} | ${whole(ours)} | ${ratio.toFixed(2)}x | ${must}x |`,
);
const { measuredOn, node, cpu } = machine();
const section = `## Webhook receivers

\`npx tsx bench/webhooks-receivers.ts\`; ${measuredOn}, Node ${node}, ${cpu}, load before the run ${load}.

Unique events a second through a handler with an inbox, against a receiver written by hand for the same store: the header
checked, the body parsed, one insert (or \`SET NX\` each, or a \`Set\`), an answer. The two take turns, 64 requests at a time;
medians of five. "Copies": how often each webhook is sent; three copies are shuffled among
all others, as a sender that repeats after minutes does.

| Store | Events a webhook | Copies | By hand | Ours | Ratio | Must |
| --- | --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`;
console.log(section);
await mkdir(new URL('./results/', import.meta.url), { recursive: true });
const report = { measuredOn, node, cpu, load, results };
await writeFile(
  new URL('./results/webhooks-receivers.json', import.meta.url),
  `${JSON.stringify(report, null, 2)}\n`,
);
writeReadmeSection('webhooks-receivers', section);

// What webhooks cost: parsing against bare JSON.parse, events a second with the memory store on one core, and bytes a
// remembered key.
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg } from 'node:os';
import { writeReadmeSection } from './readme-section.ts';
import { inboxCase, memoryCase, parseCase, storeCase } from './webhooks/cases.ts';
import { EVENTS_PER_TRACKING } from './webhooks/payload.ts';

const SIZES = [1, 20, 200];

const parse = SIZES.map(parseCase);
const throughput = [];
for (const trackings of SIZES) {
  throughput.push({ trackings, store: await storeCase(trackings), inbox: await inboxCase(trackings) });
}
const memory = await memoryCase(1_000_000);

const whole = (value: number) => Math.round(value).toLocaleString('en-US');
const rows = [
  ...parse.map(({ trackings, bytes, bareMicroseconds, parseMicroseconds, ratio }) => [
    `\`parseWebhook\` / \`JSON.parse\`, ${trackings} tracking${trackings === 1 ? '' : 's'} (${whole(bytes)} bytes)`,
    '<= 2.0x',
    `${ratio.toFixed(2)}x (${parseMicroseconds.toFixed(1)} / ${bareMicroseconds.toFixed(1)} µs)`,
  ]),
  ...throughput.flatMap(({ trackings, store, inbox }) => [
    [
      `parse + claim + commit, memory store, ${trackings * EVENTS_PER_TRACKING} events a payload`,
      '>= 50,000 events/s',
      `${whole(store)} events/s`,
    ],
    [
      `\`WebhookInbox.process\`, ${trackings * EVENTS_PER_TRACKING} events a payload`,
      '-',
      `${whole(inbox)} events/s`,
    ],
  ]),
  [
    `memory store, ${whole(memory.maxKeys)} remembered keys`,
    '<= 250 bytes a key',
    `${whole(memory.bytesPerKey)} bytes a key`,
  ],
  [
    `the same after ${whole(memory.maxKeys / 2)} more`,
    `${whole(memory.maxKeys)} keys`,
    `${whole(memory.keysAfterHalfAsManyMore)} keys, ${whole(memory.bytesPerKeyAfter)} bytes each`,
  ],
];
const table = [
  '| Case | Must reach | Measured |',
  '| --- | --- | --- |',
  ...rows.map((row) => `| ${row.join(' | ')} |`),
];
const machine = `Node ${process.version.slice(1)}, ${cpus()[0]?.model.trim()}, ${cpus().length} cores`;
console.log(`${machine}; load before the run ${loadavg()[2]?.toFixed(1)}\n\n${table.join('\n')}`);

const section = `## Webhooks

\`npm run bench:webhooks\`, or \`npx tsx bench/webhooks.ts\` for this part.

Parsing means decoding, validating every field that is known, and keeping those that are not; it is measured against bare
\`JSON.parse\` of the same text, the two taking turns. Events a second are counted on one core with events that were never
seen before, first through the three steps alone, then through the inbox, which also orders, groups what webhooks
want of the store, and reports. Medians.

${table.join('\n')}

Measured with ${machine}.
`;
await mkdir(new URL('./results/', import.meta.url), { recursive: true });
const report = { machine, parse, throughput, memory };
await writeFile(new URL('./results/webhooks.json', import.meta.url), `${JSON.stringify(report, null, 2)}\n`);
writeReadmeSection('webhooks', section);

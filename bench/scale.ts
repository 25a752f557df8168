/**
 * Polling and bulk creation at scale, in virtual time: hours pass as fast as their work is done, and every wait is exact.
 *
 * `npm run bench:scale` (about ten minutes) writes `results/scale.json` and the figures in `README.md`.
 * `npx tsx bench/scale.ts --quick` polls for two hours instead of a day, creates fewer trackers, and only prints.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { writeReadmeSection } from './readme-section.ts';
import { measureBulk } from './scale/bulk.ts';
import type { Figure } from './scale/case.ts';
import { measureIdleHeap } from './scale/idle-heap.ts';
import { measureManyIds } from './scale/many-ids.ts';
import { measureMembership } from './scale/membership.ts';
import { measurePolling } from './scale/polling.ts';
import { machine, table } from './scale/report.ts';
import { VirtualClock } from './scale/virtual-clock.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const place = machine(new Date());
const figures: Figure[] = [];
const add = (...more: readonly Figure[]) => {
  figures.push(...more);
  for (const { name, found, isReached } of more) {
    console.log(`${isReached === false ? 'MISSED' : isReached ? 'reached' : '-'}  ${name}: ${found}`);
  }
};

// In real time, so before the clock is virtual.
add(await measureManyIds());
const clock = new VirtualClock();
clock.install();
add(await measureMembership(clock));
add(await measureIdleHeap(clock));
add(await measureBulk(clock, 10_000, 10));
add(await measureBulk(clock, values.quick ? 100_000 : 1_000_000, 10));
add(await measureBulk(clock, 10_000, 50));
add(await measureBulk(clock, 10_000, 200));
add(...(await measurePolling(clock, 2, 10)).slice(0, 1));
add(...(await measurePolling(clock, values.quick ? 2 : 24)));

const text = [
  `Measured on ${place.measuredOn}: Node ${place.node}, ${place.cores} x ${place.cpu}. Times are virtual.`,
  table(figures),
].join('\n\n');
console.log(`\n${text}`);

if (!values.quick) {
  const result = { command: 'npm run bench:scale', machine: place, figures };
  const rounded = (_key: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1000) / 1000 : value;
  writeFileSync(new URL('./results/scale.json', import.meta.url), `${JSON.stringify(result, rounded, 2)}\n`);
  writeReadmeSection('scale figures', text);
}
if (figures.some(({ isReached }) => isReached === false)) process.exitCode = 1;

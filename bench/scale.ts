/**
 * Measures polling and bulk creation at scale in virtual time: hours pass as fast as their work is done, and waits are exact.
 *
 * `npm run bench:scale` writes `results/scale.json`. `-- --quick` polls for two hours instead of a day, creates fewer
 * trackers, and only prints. The program exits with 1 when a target is missed.
 */
import { parseArgs } from 'node:util';
import { describeRun, type Figure, writeResult } from './report.ts';
import { measureBulk } from './scale/bulk.ts';
import { measureIdleHeap } from './scale/idle-heap.ts';
import { measurePolling } from './scale/polling.ts';
import { VirtualClock } from './scale/virtual-clock.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const measuredOn = describeRun();
const figures: Figure[] = [];
const add = (...more: readonly Figure[]) => {
  figures.push(...more);
  for (const { name, found, target, isReached } of more) {
    const verdict = target === undefined ? '' : ` (${target}: ${isReached ? 'reached' : 'MISSED'})`;
    console.log(`${name}: ${found}${verdict}`);
  }
};

console.log(measuredOn);
const clock = new VirtualClock();
clock.install();
add(await measureIdleHeap(clock));
add(await measureBulk(clock, 10_000, 10));
add(await measureBulk(clock, values.quick ? 100_000 : 1_000_000, 10));
add(await measureBulk(clock, 10_000, 50));
add(...(await measurePolling(clock, values.quick ? 2 : 24)));

if (!values.quick) writeResult('scale.json', { measuredOn, figures });
if (figures.some(({ isReached }) => isReached === false)) process.exitCode = 1;

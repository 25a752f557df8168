/**
 * Measures polling and bulk import at scale in virtual time: an hour passes as soon as its work is done, and waits are exact. Also
 * measures the fake service.
 *
 * `npm run bench:scale` writes `results/scale.json`. `-- --quick` polls for an hour instead of a day, creates fewer
 * trackers, and only prints; so does a run of some parts. The program exits with 1 when a target is missed.
 */
import { readArguments } from './arguments.ts';
import { describeRun, type Figure, writeResult } from './report.ts';
import { measureAccountHeap } from './scale/account-heap.ts';
import { measureBulk } from './scale/bulk.ts';
import { measureFake } from './scale/fake.ts';
import { measureIdleHeap } from './scale/idle-heap.ts';
import { measurePolling } from './scale/polling.ts';
import { VirtualClock } from './scale/virtual-clock.ts';

const PARTS = {
  heap: 'The memory of a polled tracker between two polls, and of one of many accounts.',
  polling: '10,000 trackers, polled every 20 minutes for a day of virtual time.',
  fake: 'The fake service with many trackers that play a scenario.',
  imports: 'createMany with up to a million inputs.',
};

const { values, parts } = readArguments({
  command: 'bench:scale',
  summary: 'Measures polling and bulk import at scale in virtual time.',
  options: { quick: { help: 'Polls for an hour, creates at most 100,000 trackers, and only prints.' } },
  parts: PARTS,
});
const measuredOn = describeRun();
const figures: Figure[] = [];
const add = (...more: readonly Figure[]) => {
  figures.push(...more);
  for (const { name, found, target, isReached } of more) {
    const verdict = target === undefined ? '' : ` (${target}: ${isReached ? 'reached' : 'MISSED'})`;
    console.log(`${name}: ${found}${verdict}`);
  }
};

console.log(
  'What large numbers of trackers cost, in virtual time: waits are exact, and durations are those that the limits of the service cause. "Over" compares with the shortest time that the limit allows, "within" is the largest difference between two polls of a tracker and the interval.\n',
);
if (parts.includes('fake')) add(await measureFake(2_000, 12_000));
const clock = new VirtualClock();
clock.install();
if (parts.includes('heap')) add(await measureIdleHeap(clock), await measureAccountHeap());
// The imports come last, because they take longest.
if (parts.includes('polling')) add(...(await measurePolling(clock, values.quick ? 1 : 24)));
if (parts.includes('imports')) {
  add(await measureBulk(clock, values.quick ? 100_000 : 1_000_000, 10));
  add(await measureBulk(clock, 10_000, 50));
}

console.log(`\nMeasured on ${measuredOn}.`);

const isWhole = parts.length === Object.keys(PARTS).length;
if (isWhole && !values.quick) writeResult('scale.json', { measuredOn, figures });
if (figures.some(({ isReached }) => isReached === false)) process.exitCode = 1;

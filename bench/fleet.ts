/**
 * Compares `RedisLimiter` with other ways to share one account's limit among processes, on a loopback service that enforces
 * the limit. The program needs Redis, at `REDIS_URL` or on this machine.
 *
 * `npm run bench:fleet` runs each case three times and writes `results/fleet.json`. `-- --quick` runs each case once, and only
 * prints.
 */
import { bundled } from '../scripts/support/bundled.ts';
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { REDIS_LIMITER_PEER } from '../test/support/fleet/peers.ts';
import { type FleetRun, runFleetCase } from '../test/support/fleet/run.ts';
import { readArguments } from './arguments.ts';
import { cases } from './fleet/cases.ts';
import { describeRun, writeResult } from './report.ts';
import { median } from './statistics.ts';

/** The program of each contender's processes, in the order of the columns. */
const CONTENDERS = {
  RedisLimiter: REDIS_LIMITER_PEER,
  'rate-limiter-flexible': 'bench/fleet/rate-limiter-flexible-peer.ts',
  uncoordinated: 'bench/fleet/uncoordinated-peer.ts',
};

interface ContenderRun extends FleetRun {
  readonly contender: string;
}

const { values } = readArguments({
  command: 'bench:fleet',
  summary: 'Measures processes that share one limit through Redis. Needs Redis (REDIS_URL).',
  options: { quick: { help: 'Runs every case once, and only prints.' } },
});
const { quick } = values;
const rounds = quick ? 1 : 3;
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const measuredOn = describeRun('rate-limiter-flexible', 'ioredis');
const runs = new Map<string, ContenderRun[]>(cases.map(({ name }) => [name, []]));

for (let round = 1; round <= rounds; round += 1) {
  for (const { name, target: _, ...fleetCase } of cases) {
    console.error(`Round ${round} of ${rounds}: ${name}`);
    // Run one contender after the other, because a machine has too few processors for the processes of all contenders.
    for (const [contender, program] of Object.entries(CONTENDERS)) {
      const run = await runFleetCase({ ...fleetCase, programs: [await bundled(program)] }, redisUrl);
      runs.get(name)?.push({ contender, ...run });
    }
  }
}

const rows = cases.map(({ name, target }) => {
  const contenders = Object.keys(CONTENDERS);
  const cells = contenders.map((contender) => formatRun(findMiddleRun(runs.get(name) ?? [], contender)));
  const ours = findMiddleRun(runs.get(name) ?? [], 'RedisLimiter');
  if (!ours || !target) return [name, ...cells, ''];
  return [name, ...cells, `${target.text}: ${target.isReached(ours) ? 'reached' : 'MISSED'}`];
});
console.log(
  [
    'How well processes share one limit of 10 requests per second: 200 calls, divided among them, all made at once. A refused call is sent again. "uncoordinated" is this client with a limiter of its own in each process.',
    [
      'Cells, of the run with the median share:',
      '- responses with 429, of the worst run',
      '- seconds until the last call was accepted',
      '- accepted requests per second, in percent of the limit',
      '- Redis commands per call',
      '- calls that the slowest process had made when the fastest had made four fifths of its own, of this number',
      '- how often a process lost or regained Redis',
    ].join('\n'),
    markdownTable(['Case', ...Object.keys(CONTENDERS), 'Target of RedisLimiter'], rows),
    `Measured on ${measuredOn}.`,
  ].join('\n\n'),
);
if (!quick)
  writeResult('fleet.json', {
    measuredOn,
    cases: cases.map(({ name }) => ({ name, runs: runs.get(name) ?? [] })),
  });

/** Finds the run with the median share, and reports the refusals of the worst run because a limit must be kept in every run. */
function findMiddleRun(all: readonly ContenderRun[], contender: string): FleetRun | undefined {
  const ofContender = all.filter((run) => run.contender === contender);
  const share = median(ofContender.map(({ sharePercent }) => sharePercent));
  const middle = ofContender.find(({ sharePercent }) => sharePercent === share);
  return middle && { ...middle, refused: Math.max(...ofContender.map(({ refused }) => refused)) };
}

function formatRun(run: FleetRun | undefined): string {
  if (!run) return '';
  const { refused, seconds, sharePercent, commandsPerCall, leastServed, firstServed, fallbacks, lost } = run;
  const figures = [refused, seconds.toFixed(1), sharePercent.toFixed(1), commandsPerCall.toFixed(2)];
  const cell = [...figures, `${leastServed} of ${firstServed}`, fallbacks.length].join(' / ');
  return `${cell}${lost > 0 ? `, ${lost} lost` : ''}`;
}

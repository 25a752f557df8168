/**
 * Holds `RedisLimiter` against other ways to share one account's limit among processes, on a loopback service that enforces
 * it, and looks at what happens when a process dies, Redis goes away, or a clock is wrong. It needs a Redis: `REDIS_URL`,
 * else the one of this machine.
 *
 * `npm run bench:fleet` runs `RedisLimiter` three times and the others once, and writes `results/fleet.json`. `--quick` runs
 * all once; `--only <text>` keeps the cases whose name holds the text; `--alone` leaves the other limiters out. With one of
 * these it only prints.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { cases } from './fleet/cases.ts';
import { comparisonTable, summarize, troubleTable } from './fleet/report.ts';
import { type FleetRun, runFleetCase } from './fleet/run.ts';
import { machine } from './limiter/report.ts';
import { writeReadmeSection } from './readme-section.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    alone: { type: 'boolean', default: false },
  },
});
const isComplete = !values.quick && !values.alone && values.only === undefined;
const rounds = values.quick ? 1 : 3;
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const onlyOurs = { contenders: ['RedisLimiter'] as const };
const chosen = cases
  .filter(({ name }) => name.includes(values.only ?? ''))
  .map((each) => (values.alone ? { ...each, ...onlyOurs } : each));
const runsOf = new Map<string, FleetRun[]>(chosen.map(({ name }) => [name, []]));

for (let round = 1; round <= rounds; round += 1) {
  for (const each of chosen) {
    console.error(`Round ${round} of ${rounds}: ${each.name}`);
    const again = round === 1 ? each : { ...each, ...onlyOurs };
    runsOf.get(each.name)?.push(...(await runFleetCase(again, redisUrl)));
  }
}

const reports = chosen.map((each) => summarize(each, runsOf.get(each.name) ?? []));
const { packages: _packages, ...place } = machine();
const packages = {
  'rate-limiter-flexible': versionOf('rate-limiter-flexible'),
  ioredis: versionOf('ioredis'),
};
const figures = [
  `Measured on ${place.measuredOn}: Node ${place.node}, ${place.cpu}, ${place.memoryGiB} GiB, ${place.system}; ` +
    `rate-limiter-flexible ${packages['rate-limiter-flexible']}, ioredis ${packages.ioredis}. ` +
    `${rounds === 1 ? 'One run.' : `Of RedisLimiter the middle one of ${rounds} runs by share, with the refusals of the worst; of the others one run.`}`,
  'Cells: responses of 429 / seconds / percent of the limit / Redis commands per call / calls of the least served process when the first has four fifths of its calls / how often a process lost Redis or had it back.',
  comparisonTable(reports),
  troubleTable(reports),
]
  .filter((part) => part !== '')
  .join('\n\n');
console.log(figures);

if (isComplete) {
  const result = { command: 'npm run bench:fleet', machine: { ...place, packages }, cases: reports };
  const file = new URL('./results/fleet.json', import.meta.url);
  writeFileSync(file, `${JSON.stringify(result, rounded, 1)}\n`);
  writeReadmeSection('fleet figures', figures);
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  // Sound: every installed package has a version in its package.json.
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** Nobody reads nanoseconds. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
}

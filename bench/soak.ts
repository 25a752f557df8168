/**
 * Runs all of it at once for a while: a client at its limits, 2,000 polled trackers, four receivers, `RedisLimiter` and every
 * kind of inbox, on real HTTP, Redis and PostgreSQL, while something fails every few seconds. Then it counts what was lost,
 * doubled and left over, and exits with 1 when a promise was broken.
 *
 * `npm run bench:soak -- --minutes 15` writes `results/soak.json`, `results/soak.svg` and its section of `README.md`; a run of
 * fewer minutes only prints. It needs `redis-server`, which it starts for itself, and a PostgreSQL: `DATABASE_URL`, else the
 * one of this machine, in a schema of its own.
 */
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { writeReadmeSection } from './readme-section.ts';
import { machine } from './scale/report.ts';
import { drawChart } from './soak/chart.ts';
import type { Signal } from './soak/messages.ts';
import { outageReports, toMarkdown, verdictsOf } from './soak/report.ts';
import { RECEIVERS, runSoak } from './soak/run.ts';
import { LIMIT_PER_SECOND, TRACKERS } from './soak/service.ts';

/** A shorter run is too short to tell whether memory grows. */
const WRITTEN_FROM_MINUTES = 15;
const SLICES = 180;

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '15' } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`Expected --minutes to be a number above 0, got "${values.minutes}"`);
const postgresUrl = process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test';

// The servers and processes of the soak end with it.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
const directory = await mkdtemp(join(tmpdir(), 'soak-'));
const result = await runSoak(minutes, postgresUrl, directory);
const { pulse, outages, startedAt, seconds, ...figures } = result;
const [verdicts, reports] = [verdictsOf(result), outageReports(result)];
const place = machine(new Date());
const perSecondOf = (signal: Signal) =>
  pulse.perSecond(signal, SLICES, startedAt, startedAt + seconds * 1_000);
const perSecond = {
  calls: perSecondOf('calls'),
  redis: perSecondOf('redis'),
  postgres: perSecondOf('postgres'),
  transactional: perSecondOf('transactional'),
};
const late = figures.latenessMs;
const count = (value: number) => value.toLocaleString('en-US');
const section = [
  `Measured on ${place.measuredOn}: Node ${place.node}, ${place.cores} x ${place.cpu}. ${(seconds / 60).toFixed(1)} minutes, ` +
    `${count(TRACKERS)} trackers polled at ${LIMIT_PER_SECOND} requests per second, ${RECEIVERS} receivers, ${count(outages.length)} outages, ` +
    `${count(figures.requests)} requests to the service (${count(pulse.totals.calls)} answered with results), ` +
    `${count(figures.events)} events in ${count(figures.webhooks.sent)} webhooks. ` +
    `How busy the machine was: timers of the service came ${late.median.toFixed(0)} ms late (median), ${late.p99.toFixed(0)} ms (99%), ${late.longest.toFixed(0)} ms (longest).`,
  toMarkdown(verdicts, reports),
].join('\n\n');
console.log(section);

if (minutes >= WRITTEN_FROM_MINUTES) {
  const rounded = (_key: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value;
  const command = `npm run bench:soak -- --minutes ${minutes}`;
  const json = { command, machine: place, seconds, verdicts, reports, ...figures, perSecond };
  const results = new URL('./results/', import.meta.url);
  writeFileSync(new URL('soak.json', results), `${JSON.stringify(json, rounded, 1)}\n`);
  writeFileSync(new URL('soak.svg', results), drawChart({ startedAt, seconds, perSecond, outages }));
  writeReadmeSection('soak figures', section);
}
const isBroken = verdicts.some(({ isKept }) => isKept === false);
// What happened can be told from the journals only.
if (isBroken) {
  writeFileSync(join(directory, 'outages.json'), JSON.stringify(outages));
  console.error(`A promise was broken; what each process wrote down is in ${directory}`);
} else {
  await rm(directory, { recursive: true });
}
// Not left to Node: webhooks that nobody accepts are sent for long.
process.exit(isBroken ? 1 : 0);

/**
 * Runs two versions of the package side by side, as a rolling deploy does, while processes are killed: receivers share one store,
 * and clients share one limit. Every second process, and every second one that replaces a killed one, runs the older version.
 *
 * `npm run bench:deploy -- --old <tarball>` runs an older package beside the sources, or beside the package of `--new <tarball>`, and
 * only prints. The program needs Redis and PostgreSQL, at `REDIS_URL` and `DATABASE_URL` or on this machine.
 */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { bundled } from '../scripts/support/bundled.ts';
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { mustRun } from '../scripts/support/run.ts';
import { REDIS_LIMITER_PEER } from '../test/support/fleet/peers.ts';
import { runFleetCase } from '../test/support/fleet/run.ts';
import { RECEIVER } from '../test/system/receivers/fleet.ts';
import { readArguments, refuse } from './arguments.ts';
import { describeRun } from './report.ts';
import { runOnPostgres, runOnRedis } from './webhooks/storm.ts';

const KILLS = 10;
const EVENTS = 4_000;

const { values } = readArguments({
  command: 'bench:deploy',
  summary:
    'Runs two versions of the package side by side while processes are killed. Needs Redis and PostgreSQL.',
  options: {
    old: { value: '<tarball>', help: 'The older version, as `npm pack` writes it.' },
    new: { value: '<tarball>', help: 'The newer version. Default: the sources.' },
  },
});
const oldTarball = values.old ?? refuse('Name the older version: --old <tarball>');
for (const tarball of [oldTarball, values.new].filter((given) => given !== undefined))
  if (!existsSync(tarball))
    refuse(`Expected "${tarball}" to be a file that \`npm pack\` wrote, found no file`);
if (values.new === oldTarball) refuse('Expected two versions, got the same tarball twice');
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const postgresUrl = process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test';
const measuredOn = describeRun();

const folder = await mkdtemp(join(tmpdir(), 'tracking-client-deploy-'));
/** Unpacks a package, and returns its folder. */
async function unpack(tarball: string): Promise<string> {
  const target = await mkdtemp(join(folder, 'version-'));
  await mustRun('tar', ['-xzf', resolve(tarball)], { cwd: target });
  return join(target, 'package');
}
const versions = [values.new === undefined ? undefined : await unpack(values.new), await unpack(oldTarball)];
/** The same program with both versions. */
async function inBothVersions(program: string): Promise<string[]> {
  const programs = await Promise.all(versions.map((version) => bundled(program, version)));
  if (new Set(programs).size === 1) throw new Error('Expected two versions, got the same code twice');
  return programs;
}
let isBroken = false;

try {
  const receivers = await inBothVersions(RECEIVER);
  const rows: string[][] = [];
  for (const inbox of ['redis', 'ioredis', 'postgres'] as const) {
    console.error(`${inbox}, ${KILLS} kills`);
    const run = inbox === 'postgres' ? runOnPostgres : runOnRedis;
    const url = inbox === 'postgres' ? postgresUrl : redisUrl;
    const storm = { inbox, kills: KILLS, events: EVENTS, eventsPerWebhook: 8, programs: receivers };
    const { lost, repeats, unexcused, seconds } = await run(url, storm);
    rows.push([inbox, ...[lost, repeats, unexcused].map(String), seconds.toFixed(1)]);
    isBroken ||= lost + unexcused > 0;
  }
  console.log(
    `Four receivers, ${EVENTS} events that come three times, ${KILLS} receivers killed and replaced.\n\n` +
      markdownTable(['Store', 'Lost', 'Repeated', 'Unexplained', 'Seconds'], rows),
  );

  const clients = await inBothVersions(REDIS_LIMITER_PEER);
  const limits: string[][] = [];
  for (const [mode, killAfterSeconds] of [
    ['sliding', undefined],
    ['fixed', undefined],
    ['sliding', 6],
  ] as const) {
    const name = `${mode}${killAfterSeconds === undefined ? '' : `, one client killed after ${killAfterSeconds} s`}`;
    console.error(name);
    const { refused, lost, sharePercent, leastServed, firstServed } = await runFleetCase(
      {
        ...{ mode, processes: 4, calls: 200, programs: clients },
        ...(killAfterSeconds !== undefined && { killAfterSeconds }),
      },
      redisUrl,
    );
    const slowest = `${leastServed} of ${firstServed}`;
    limits.push([name, `${refused}`, `${lost}`, sharePercent.toFixed(1), slowest]);
    isBroken ||= refused + lost > 0;
  }
  console.log(
    'Four clients share a limit of 10 requests per second for 200 calls.\n\n' +
      markdownTable(['Window', 'Refused', 'Lost', 'Used share of the limit in %', 'Slowest client'], limits),
  );
  console.log(`Measured on ${measuredOn}.`);
} finally {
  await rm(folder, { recursive: true });
}
if (isBroken) process.exitCode = 1;

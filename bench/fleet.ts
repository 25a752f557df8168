/**
 * Compares `RedisLimiter` with other ways to share one account's limit among processes, on a loopback service that enforces
 * the limit, and shows what happens when a process dies, Redis goes away, or a clock is wrong. Then it polls 9,000 trackers with
 * three workers of a recipe. The program needs Redis, and the workers need PostgreSQL, at `REDIS_URL` and `DATABASE_URL` or on
 * this machine.
 *
 * `npm run bench:fleet` compares the limiters three times, polls once, and writes `results/fleet.json` and
 * `results/fleet-polling.json`. `-- limiters` and `-- polling` run one part. `-- --quick` runs each case once and briefly, and
 * `-- --only <text>` runs only the cases whose name contains the text; with either option, the program writes no file.
 */
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { readArguments } from './arguments.ts';
import { cases } from './fleet/cases.ts';
import { CONTENDERS, type Contender } from './fleet/peers.ts';
import { createPollingCases, runPollingCase } from './fleet/polling.ts';
import { formatPolling, type PollingResult, type PollingRun } from './fleet/polling-figures.ts';
import { type FleetRun, runFleetCase } from './fleet/run.ts';
import { describeRun, writeResult } from './report.ts';
import { median } from './statistics.ts';

const { values, parts } = readArguments({
  command: 'bench:fleet',
  summary:
    'Measures processes that share one limit through Redis. Needs Redis (REDIS_URL), and PostgreSQL (DATABASE_URL) for `polling`.',
  options: {
    quick: { help: 'Runs every case once and briefly, and only prints.' },
    only: { value: '<text>', help: 'Runs only the cases whose name contains the text, and only prints.' },
  },
  parts: {
    limiters: 'Compares `RedisLimiter` with two other ways to share one limit.',
    polling: '9,000 trackers, polled by three workers of the recipe polling-worker.md.',
  },
});
const POLLING_EXPLAINED =
  '9,000 trackers, whose polls need the whole limit, are polled by three workers. "Lag" is how long a tracker was due before its poll. "Round" is the time in which every tracker is polled once, so the lag settles at the round minus the interval.';
const { quick, only = '' } = values;
const isWhole = !quick && values.only === undefined;
const rounds = quick ? 1 : 3;
const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
if (parts.includes('limiters')) await compareLimiters();
if (parts.includes('polling')) await measurePolling();

async function compareLimiters(): Promise<void> {
  const chosen = cases.filter(({ name }) => name.includes(only));
  const compared = chosen.filter(({ contenders }) => contenders === undefined);
  const alone = chosen.filter(({ contenders }) => contenders !== undefined);
  /** Two cases with four processes each need no more processes than the largest case, which has eight, so they run side by side. */
  const turns = [
    ...compared.map((each) => [each]),
    ...alone.flatMap((each, index) =>
      index % 2 === 0 ? [[each, ...alone.slice(index + 1, index + 2)]] : [],
    ),
  ];
  const runs = new Map<string, FleetRun[]>(chosen.map(({ name }) => [name, []]));

  for (let round = 1; round <= rounds; round += 1) {
    for (const together of turns) {
      console.error(`Round ${round} of ${rounds}: ${together.map(({ name }) => name).join('; ')}`);
      await Promise.all(
        together.map(async (each) => runs.get(each.name)?.push(...(await runFleetCase(each, redisUrl)))),
      );
    }
  }

  const measuredOn = describeRun('rate-limiter-flexible', 'ioredis');
  const rows = chosen.map(({ name, target }) => {
    const cells = CONTENDERS.map((contender) => formatRun(findMiddleRun(runs.get(name) ?? [], contender)));
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
      markdownTable(['Case', ...CONTENDERS, 'Target of RedisLimiter'], rows),
      `Measured on ${measuredOn}.`,
    ].join('\n\n'),
  );
  if (isWhole)
    writeResult('fleet.json', {
      measuredOn,
      cases: chosen.map(({ name }) => ({ name, runs: runs.get(name) ?? [] })),
    });
}

async function measurePolling(): Promise<void> {
  const postgresUrl = process.env['DATABASE_URL'] ?? 'postgres://root@127.0.0.1:5432/test';
  const runs: PollingRun[] = [];
  const measuredOn = describeRun('redis', 'pg');
  for (const turn of createPollingCases(quick)) {
    const together = turn.filter(({ name }) => name.includes(only));
    if (together.length === 0) continue;
    console.error(`Polling: ${together.map(({ name }) => name).join('; ')}`);
    runs.push(
      ...(await Promise.all(together.map((each) => runPollingCase(each, { redisUrl, postgresUrl })))),
    );
  }
  const result: PollingResult = { measuredOn, runs };
  console.log(`${POLLING_EXPLAINED}\n\n${formatPolling(result)}`);
  if (isWhole) writeResult('fleet-polling.json', { ...result });
}

/** Finds the run with the median share, and reports the refusals of the worst run because a limit must be kept in every run. */
function findMiddleRun(runs: readonly FleetRun[], contender: Contender): FleetRun | undefined {
  const ofContender = runs.filter((run) => run.contender === contender);
  const share = median(ofContender.map(({ sharePercent }) => sharePercent));
  const middle = ofContender.find(({ sharePercent }) => sharePercent === share);
  return middle && { ...middle, refused: Math.max(...ofContender.map(({ refused }) => refused)) };
}

function formatRun(run: FleetRun | undefined): string {
  if (!run) return '';
  const { refused, seconds, sharePercent, commandsPerCall, leastServed, firstServed, fallbacks, lost } = run;
  const figures = [refused, seconds.toFixed(1), sharePercent.toFixed(1), commandsPerCall.toFixed(2)];
  const cell = [...figures, `${leastServed} of ${firstServed}`, fallbacks.length].join(' / ');
  const pace = run.sharePercentAfterKill;
  const afterKill = pace === undefined ? '' : `, ${pace.toFixed(0)}% from 2 s after the kill on`;
  return `${cell}${afterKill}${lost > 0 ? `, ${lost} lost` : ''}`;
}

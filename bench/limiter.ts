/**
 * Compares the limiter of this client with others, on a loopback service that enforces its limit in another process.
 *
 * `npm run bench:limiter` runs everything three times, writes `results/limiter.json` and draws `docs/limiters.svg`.
 * `-- --quick` makes fewer calls, runs once and only prints.
 */
import { writeFileSync } from 'node:fs';
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { readArguments } from './arguments.ts';
import { type Case, cases } from './limiter/cases.ts';
import { type Run, runCase } from './limiter/drive.ts';
import { drawLimiters } from './limiter/picture.ts';
import { describeRun, writeResult } from './report.ts';
import { median, sum } from './statistics.ts';

/** Two cores run two cases without delaying either, because a case makes at most 50 requests per second. */
const CASES_AT_ONCE = 2;

const { values } = readArguments({
  command: 'bench:limiter',
  summary:
    'Compares the limiter of this client with four others, on a loopback service that enforces its limit.',
  options: { quick: { help: 'Makes fewer calls, runs every case once, and only prints.' } },
});
const { quick } = values;
const rounds = quick ? 1 : 3;
const calls = quick ? 50 : 200;

const runs = new Map<string, Run[][]>(cases.map(({ name }) => [name, []]));
for (let round = 1; round <= rounds; round += 1) {
  for (let index = 0; index < cases.length; index += CASES_AT_ONCE) {
    const together = cases.slice(index, index + CASES_AT_ONCE);
    console.error(`Round ${round} of ${rounds}: ${together.map(({ name }) => name).join('; ')}`);
    await Promise.all(together.map(async (each) => runs.get(each.name)?.push(await runCase(each, calls))));
  }
}

const measuredOn = describeRun('p-throttle', 'bottleneck');
const reports = cases.map((each) => summarize(each, runs.get(each.name) ?? []));
console.log(
  [
    'How much of a limit each limiter uses, and how many of its requests the service refuses. All calls are made at once; a refused call is sent again.',
    'Cells, medians of all rounds: responses with 429 / seconds until the last call was accepted / accepted requests per second, in percent of the limit. The first window is empty, so 200 calls can reach 105%.',
    comparisonTable(),
    'A sliding counter takes the requests of the last window as evenly spread, so it refuses requests that kept the limit. This client then assumes other users of the account and slows down.',
    `Measured on ${measuredOn}.`,
  ].join('\n\n'),
);
if (!quick) {
  writeResult('limiter.json', { measuredOn, cases: reports });
  writeFileSync(new URL('../docs/limiters.svg', import.meta.url), drawLimiters(reports));
}

/** Takes the medians of all rounds of a case. */
function summarize({ name, target }: Case, caseRounds: readonly (readonly Run[])[]) {
  const names = caseRounds[0]?.map(({ contender }) => contender) ?? [];
  const measurements = names.map((contender) => {
    const ofContender = caseRounds.flat().filter((run) => run.contender === contender);
    const middle = (field: 'refused' | 'seconds' | 'sharePercent') =>
      median(ofContender.map((run) => run[field]));
    return {
      contender,
      median: {
        refused: middle('refused'),
        seconds: middle('seconds'),
        sharePercent: middle('sharePercent'),
      },
      lost: sum(ofContender.map(({ lost }) => lost)),
    };
  });
  return { name, target, measurements };
}

function comparisonTable(): string {
  const names = reports[0]?.measurements.map(({ contender }) => contender) ?? [];
  const rows = reports.map(({ name, target, measurements }) => {
    const cells = measurements.map(({ median: { refused, seconds, sharePercent }, lost }) => {
      const cell = `${refused} / ${seconds.toFixed(1)} / ${sharePercent.toFixed(0)}`;
      return lost > 0 ? `${cell}, ${lost} lost` : cell;
    });
    const ours = measurements[0]?.median;
    if (!target || !ours) return [name, ...cells, ''];
    const isReached = ours.refused <= target.refused && ours.sharePercent >= target.sharePercent;
    const words = `<= ${target.refused}, >= ${target.sharePercent}%`;
    return [name, ...cells, `${words}: ${isReached ? 'reached' : 'MISSED'}`];
  });
  return markdownTable(['Case', ...names, 'Target of this client'], rows);
}

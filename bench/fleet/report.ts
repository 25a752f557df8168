import { median } from '../statistics.ts';
import type { MeasuredCase } from './cases.ts';
import type { FleetRun } from './run.ts';
import { CONTENDER_NAMES } from './task.ts';

/** All rounds of one case. */
export interface CaseReport {
  readonly name: string;
  readonly calls: number;
  readonly target: string | undefined;
  /** Whether the run with the median share reached the target. */
  readonly isReached: boolean | undefined;
  readonly runs: readonly FleetRun[];
}

export function summarize({ name, calls, target }: MeasuredCase, runs: readonly FleetRun[]): CaseReport {
  const ours = middleRun(runs.filter(({ contender }) => contender === 'RedisLimiter'));
  return { name, calls, target: target?.text, isReached: ours && target?.isReached(ours), runs };
}

/** Refusals are those of the worst round: a promise holds always or not at all. */
function middleRun(runs: readonly FleetRun[]): FleetRun | undefined {
  const share = median(runs.map(({ sharePercent }) => sharePercent));
  const middle = runs.find(({ sharePercent }) => sharePercent === share);
  return middle && { ...middle, refused: Math.max(...runs.map(({ refused }) => refused)) };
}

/** The comparison with others, as a Markdown table. */
export function comparisonTable(reports: readonly CaseReport[]): string {
  const rows = reports
    .filter(({ runs }) => runs.some(({ contender }) => contender !== 'RedisLimiter'))
    .map((report) => [
      report.name,
      ...CONTENDER_NAMES.map((name) => {
        const run = middleRun(report.runs.filter(({ contender }) => contender === name));
        return run ? cellOf(run) : '-';
      }),
      targetOf(report),
    ]);
  return table(['Case', ...CONTENDER_NAMES, 'Target of RedisLimiter'], rows);
}

/** What happens when something goes wrong, as a Markdown table. */
export function troubleTable(reports: readonly CaseReport[]): string {
  const rows = reports
    .filter(({ runs }) => runs.every(({ contender }) => contender === 'RedisLimiter'))
    .flatMap((report) => {
      const run = middleRun(report.runs);
      if (!run) return [];
      const afterKill = run.sharePercentAfterKill;
      const pace = afterKill === undefined ? '-' : `${afterKill.toFixed(0)}%`;
      const gap = `${run.longestGapSeconds.toFixed(1)} s`;
      return [[report.name, cellOf(run), String(run.lost), gap, pace, targetOf(report)]];
    });
  return table(
    ['Case', 'RedisLimiter', 'Calls lost', 'Longest pause', 'Pace from 2 s after the kill', 'Target'],
    rows,
  );
}

function cellOf(run: FleetRun): string {
  const { refused, seconds, sharePercent, commandsPerCall, leastServed, firstServed, fallbacks } = run;
  const figures = [refused, seconds.toFixed(1), sharePercent.toFixed(1), commandsPerCall.toFixed(2)];
  return [...figures, `${leastServed} of ${firstServed}`, fallbacks.length].join(' / ');
}

function targetOf({ target, isReached }: CaseReport): string {
  return target === undefined ? '-' : `${target}: ${isReached ? 'reached' : 'missed'}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

import { readFileSync } from 'node:fs';
import { cpus, totalmem, type } from 'node:os';
import { max, median } from '../statistics.ts';
import type { Case } from './cases.ts';
import type { Run } from './drive.ts';
import type { QueueCost } from './queue-cost.ts';
import type { PriorityRun } from './special-cases.ts';

/** One cell of the table: a contender in a case, over all rounds. */
export interface Measurement {
  readonly contender: string;
  readonly runs: readonly Omit<Run, 'log' | 'contender'>[];
  readonly median: { readonly refused: number; readonly seconds: number; readonly sharePercent: number };
  readonly lost: number;
}

export interface CaseReport {
  readonly name: string;
  readonly calls: number;
  readonly target: Case['target'] | null;
  /** Whether this client reached the target; null where there is none. */
  readonly reached: boolean | null;
  readonly measurements: readonly Measurement[];
}

/** Sums the rounds of one case up; the first contender is this client. */
export function summarize({ name, calls, target }: Case, rounds: readonly (readonly Run[])[]): CaseReport {
  const measurements = (rounds[0] ?? []).map(({ contender }): Measurement => {
    const runs = rounds.flatMap((round) => round.filter((run) => run.contender === contender));
    return {
      contender,
      runs: runs.map(({ refused, seconds, sharePercent, lost }) => ({
        refused,
        seconds,
        sharePercent,
        lost,
      })),
      median: {
        refused: median(runs.map((run) => run.refused)),
        seconds: median(runs.map((run) => run.seconds)),
        sharePercent: median(runs.map((run) => run.sharePercent)),
      },
      lost: runs.reduce((sum, run) => sum + run.lost, 0),
    };
  });
  const ours = measurements[0]?.median;
  const reached =
    target && ours ? ours.refused <= target.refused && ours.sharePercent >= (target.sharePercent ?? 0) : null;
  return { name, calls, target: target ?? null, reached, measurements };
}

/** The comparison as a Markdown table. */
export function comparisonTable(reports: readonly CaseReport[]): string {
  const names = reports[0]?.measurements.map(({ contender }) => contender) ?? [];
  return table(
    ['Case', ...names, 'Target of this client'],
    reports.map((report) => [
      report.name,
      ...report.measurements.map(({ median: { refused, seconds, sharePercent }, lost }) => {
        const cell = `${refused} / ${seconds.toFixed(1)} / ${sharePercent.toFixed(0)}`;
        return lost > 0 ? `${cell}, ${lost} lost` : cell;
      }),
      targetText(report),
    ]),
  );
}

function targetText({ target, reached }: CaseReport): string {
  if (!target) return '-';
  const share = target.sharePercent === undefined ? '' : `, >= ${target.sharePercent}%`;
  return `<= ${target.refused}${share}: ${reached ? 'reached' : 'missed'}`;
}

/** What waiting costs, medians over the rounds. */
export function queueTable(rounds: readonly (readonly QueueCost[])[]): string {
  return table(
    ['10,000 waiting calls', 'Memory', 'Timers', 'All rejected after an abort in', 'Warnings'],
    (rounds[0] ?? []).map(({ name, rejectedAfterMs }) => {
      const costs = rounds.flatMap((round) => round.filter((cost) => cost.name === name));
      const rejected = median(costs.map((cost) => cost.rejectedAfterMs ?? Number.NaN));
      return [
        name,
        `${median(costs.map((cost) => cost.megabytes)).toFixed(1)} MB`,
        String(median(costs.map((cost) => cost.timers))),
        rejectedAfterMs === null ? 'one call cannot be given up' : `${rejected.toFixed(1)} ms`,
        String(max(costs.map((cost) => cost.warnings))),
      ];
    }),
  );
}

/** How long one interactive call waits among background calls. */
export function priorityTable(runs: readonly PriorityRun[], calls: number): string {
  const waits = runs.map((run) => run.waitedMs);
  return table(
    [
      `${calls} background calls at 10/s, one interactive call`,
      '429s',
      'It waited (median, longest)',
      'Background',
    ],
    [
      [
        'one token stays free for it',
        String(max(runs.map((run) => run.refused))),
        `${median(waits).toFixed(0)} ms, ${max(waits).toFixed(0)} ms`,
        `${median(runs.map((run) => run.backgroundPercent)).toFixed(0)}%`,
      ],
    ],
  );
}

/** Where and when the figures were measured. */
export function machine() {
  const version = (name: string): string => {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
    // Sound: every installed package has a version in its package.json.
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  };
  return {
    measuredOn: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}`,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: type(),
    packages: { 'p-throttle': version('p-throttle'), bottleneck: version('bottleneck') },
  };
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

import { markdownTable } from '../../scripts/support/markdown-table.ts';

export interface PollingRun {
  readonly name: string;
  /** Requests per second. */
  readonly limit: number;
  readonly polls: number;
  /** Number of responses with 429, from the first poll on. */
  readonly refused: number;
  /** Number of polls that failed. */
  readonly failed: number;
  /** Accepted requests, in percent of the limit. */
  readonly sharePercent: number;
  readonly intervalSeconds: number;
  /** In 99 of 100 polls, the tracker was due for at most this long. */
  readonly p99LagSeconds: number;
  readonly maxLagSeconds: number;
  /** The time in which every tracker is polled once, at the measured rate. */
  readonly roundSeconds: number;
}

/** The content of `results/fleet-polling.json`. */
export interface PollingResult {
  readonly measuredOn: string;
  readonly runs: readonly PollingRun[];
}

const MIN_SHARE_PERCENT = 95;

export function isTargetReached(run: PollingRun): boolean {
  const { refused, failed, sharePercent, maxLagSeconds, intervalSeconds } = run;
  return (
    refused === 0 && failed === 0 && sharePercent >= MIN_SHARE_PERCENT && maxLagSeconds < intervalSeconds
  );
}

/** Writes the table of polling workers in figures.md. */
export function formatPolling({ measuredOn, runs }: PollingResult): string {
  const head = ['Case', 'Limit', '429s', 'Failed polls', 'Used share', 'Interval', 'Lag: p99, max', 'Round'];
  const rows = runs.map((run) => [
    run.name,
    `${run.limit}/s`,
    `${run.refused}`,
    `${run.failed}`,
    `${run.sharePercent.toFixed(1)}%`,
    `${run.intervalSeconds.toFixed(0)} s`,
    `${run.p99LagSeconds.toFixed(1)} s, ${run.maxLagSeconds.toFixed(1)} s`,
    `${run.roundSeconds.toFixed(0)} s`,
    isTargetReached(run) ? 'reached' : 'MISSED',
  ]);
  const target = `Target: no 429s, no failed polls, used share >= ${MIN_SHARE_PERCENT}%, max lag < interval`;
  return `${markdownTable([...head, target], rows)}\n\nMeasured on ${measuredOn}.`;
}

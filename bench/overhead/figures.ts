import { markdownTable } from '../../scripts/support/markdown-table.ts';
import type { ColdStart } from './cold-start.ts';

/** Ratios are relative to this contender, because an app would do the same without the package. */
export const BY_HAND = 'ky + zod + p-retry by hand';
export const OURS = 'tracking-client';

/** The contenders in the order of the columns. */
export const CONTENDERS = ['bare fetch', "the official SDK's way", BY_HAND, OURS];

const MAX_RATIOS: Readonly<Record<number, number>> = { 10: 1.15, 200: 1.1 };
const MAX_COLD_START_RATIO = 1.12;

export interface CpuCase {
  readonly events: number;
  readonly costs: readonly {
    readonly contender: string;
    readonly microsecondsPerCall: number;
    /** Median of the ratios to the call by hand in the same round. */
    readonly ratio: number;
  }[];
}

/** The content of `results/overhead.json`. */
export interface OverheadResult {
  readonly measuredOn: string;
  readonly cpu: readonly CpuCase[];
  readonly coldStarts: readonly ColdStart[];
}

/** Writes both results as tables, with the targets. */
export function formatOverhead({ measuredOn, cpu, coldStarts }: OverheadResult): string {
  const contenders = cpu[0]?.costs.map(({ contender }) => contender) ?? [];
  return [
    markdownTable(['`results` call', ...contenders, 'At most'], cpu.map(formatCpu)),
    markdownTable(
      ['Cold start', 'Time of the whole process', 'Ratio to the process by hand', 'At most'],
      coldStarts.map(({ program, milliseconds, ratio }) => [
        ...[program, `${milliseconds.toFixed(0)} ms`],
        ...(ratio === null ? ['', ''] : [`${ratio.toFixed(2)}x`, judge(ratio, MAX_COLD_START_RATIO)]),
      ]),
    ),
    `Measured on ${measuredOn}. All numbers are medians.`,
  ].join('\n\n');
}

function formatCpu({ events, costs }: CpuCase): string[] {
  const cells = costs.map(({ contender, microsecondsPerCall, ratio }) => {
    const time = `${microsecondsPerCall.toFixed(0)} µs`;
    return contender === BY_HAND ? time : `${time}, ${ratio.toFixed(2)}x`;
  });
  const ours = costs.find(({ contender }) => contender === OURS)?.ratio ?? Number.NaN;
  const maxRatio = MAX_RATIOS[events];
  if (maxRatio === undefined) return [`${events} events`, ...cells, ''];
  return [`${events} events`, ...cells, judge(ours, maxRatio)];
}

function judge(ratio: number, maxRatio: number): string {
  return `${maxRatio.toFixed(2)}x: ${ratio <= maxRatio ? 'kept' : 'MISSED'}`;
}

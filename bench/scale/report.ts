import { cpus } from 'node:os';
import type { Figure } from './case.ts';

/** Where the figures are from. */
export function machine(measuredAt: Date) {
  return {
    measuredOn: measuredAt.toISOString().slice(0, 10),
    node: process.version,
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
  };
}

/** The figures as a Markdown table. */
export function table(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, target, isReached, found }) => {
    const verdict = target === undefined ? '-' : `${target}: ${isReached ? 'reached' : 'MISSED'}`;
    return `| ${name} | ${found} | ${verdict} |`;
  });
  return ['| Case | Measured | Must reach |', '| --- | --- | --- |', ...rows].join('\n');
}

import { markdownTable } from '../support/markdown-table.ts';
import { named, type Results } from './results.ts';

/** What most people meet, what sets limiters apart, and where this client is the slower one. */
const CASES = ['10/s fixed, jitter 80 ms', '10/s sliding, jitter 80 ms', '10/s sliding, handler 500 ms'];

/** How this client and others keep a limit of 10 per second. */
export function limiterFigures({ limiter }: Results): string {
  const cases = CASES.map((name) => named(limiter.cases, name));
  const contenders = cases[0]?.measurements.map(({ contender }) => contender) ?? [];
  const rows = cases.map(({ name, measurements }) => [
    name.replace('10/s ', ''),
    ...measurements.map(({ median }) => `${median.refused} / ${median.sharePercent.toFixed(0)}%`),
  ]);
  return markdownTable(['The service counts', ...contenders], rows);
}

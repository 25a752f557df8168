import { rectangle, round, STYLE, text } from '../limiter/chart.ts';
import { SIGNALS, type Signal } from './messages.ts';
import type { Outage } from './pulse.ts';

const WIDTH = 960;
const LEFT = 250;
const RIGHT = 20;
const TOP = 40;
const STRIP = 58;
const BAR = 42;
const ROW = 15;
const NAMES: Readonly<Record<Signal, string>> = {
  calls: 'calls answered',
  redis: 'handled, RedisDedupeStore',
  postgres: 'handled, PostgresDedupeStore',
  transactional: 'handled, TransactionalInbox',
};

/** What is drawn: how often each signal came in each slice of the time, and what failed when. */
export interface ChartData {
  readonly startedAt: number;
  readonly seconds: number;
  readonly perSecond: Readonly<Record<Signal, readonly number[]>>;
  readonly outages: readonly Outage[];
}

/** Draws a strip for each signal, and below them a line for each kind of outage, all on one time axis. */
export function drawChart({ startedAt, seconds, perSecond, outages }: ChartData): string {
  const kinds = [...new Set(outages.map(({ name }) => name))];
  const rowsTop = TOP + SIGNALS.length * STRIP + 14;
  const bottom = rowsTop + kinds.length * ROW;
  const xOf = (second: number) => LEFT + (second / seconds) * (WIDTH - LEFT - RIGHT);
  const strips = SIGNALS.flatMap((signal, index) => {
    const values = perSecond[signal];
    const most = Math.max(1, ...values);
    const line = TOP + (index + 1) * STRIP - 8;
    const width = (xOf(seconds) - LEFT) / values.length;
    return [
      text(LEFT - 12, line - 18, 'end', 'name', NAMES[signal]),
      text(LEFT - 12, line - 3, 'end', 'note', `a second, at most ${Math.round(most)}`),
      ...values.map((value, slice) => {
        const height = (value / most) * BAR;
        return rectangle('accepted', LEFT + slice * width, line - height, width - 0.4, height);
      }),
      `<path class="line" d="M${LEFT} ${line}H${round(xOf(seconds))}"/>`,
    ];
  });
  const rows = kinds.flatMap((kind, index) => {
    const y = rowsTop + index * ROW;
    const bars = outages
      .filter(({ name }) => name === kind)
      .map(({ from, until }) => {
        const x = xOf((from - startedAt) / 1_000);
        return rectangle('refused', x, y + 2, Math.max(1.5, xOf((until - from) / 1_000) - LEFT), ROW - 5);
      });
    return [text(LEFT - 12, y + ROW - 5, 'end', 'note', kind), ...bars];
  });
  const step = seconds > 240 ? 60 : 10;
  const ticks = Array.from({ length: Math.floor(seconds / step) + 1 }, (_, tick) => tick * step).flatMap(
    (second) => [
      `<path class="grid" d="M${round(xOf(second))} ${TOP - 6}V${bottom}"/>`,
      text(xOf(second), bottom + 16, 'middle', 'note', step === 60 ? `${second / 60} min` : `${second} s`),
    ],
  );
  const height = bottom + 26;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    '<title>What went on while something failed every few seconds</title>',
    STYLE,
    text(LEFT, 20, 'start', 'name', 'What went on while something failed every few seconds'),
    ...ticks,
    ...strips,
    ...rows,
    '</svg>',
    '',
  ].join('\n');
}

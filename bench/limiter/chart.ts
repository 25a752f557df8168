import type { Run } from './drive.ts';

const WIDTH = 880;
const LEFT = 164;
const RIGHT = 150;
const TOP = 46;
const STRIP = 62;
/** Pixels above the line of a strip. */
const UP = 40;
const PER_REQUEST = 3;
const BIN_SECONDS = 0.25;
const TICK_SECONDS = 5;

// These colours are visible on white and on black; the text follows the colour scheme of the reader.
const STYLE = `<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.accepted { fill: #2f81f7 } .refused { fill: #e5484d }
path { stroke: #8c959f; stroke-width: 0.5 }
@media (prefers-color-scheme: dark) { text { fill: #9198a1 } }
</style>`;

/** Draws one strip a run: requests that were accepted above the line, those that were refused below it. */
export function drawChart(title: string, runs: readonly Run[]): string {
  const end = Math.ceil(Math.max(...runs.map(({ seconds }) => seconds)) / TICK_SECONDS) * TICK_SECONDS;
  const scale = (WIDTH - LEFT - RIGHT) / end;
  const bottom = TOP + runs.length * STRIP;
  const ticks = Array.from({ length: end / TICK_SECONDS + 1 }, (_, tick) => tick * TICK_SECONDS);
  const strips = runs.flatMap(({ contender, refused, sharePercent, log }, index) => {
    const line = TOP + index * STRIP + UP;
    const bars = Array.from({ length: end / BIN_SECONDS }, (_, bin) => {
      const from = (log[0]?.at ?? 0) + bin * BIN_SECONDS * 1_000;
      const entries = log.filter(({ at }) => at >= from && at < from + BIN_SECONDS * 1_000);
      const accepted = entries.filter((entry) => entry.accepted).length * PER_REQUEST;
      const rejected = entries.length * PER_REQUEST - accepted;
      const x = LEFT + bin * BIN_SECONDS * scale;
      return bar('accepted', x, line - accepted, accepted) + bar('refused', x, line, rejected);
    });
    return [
      text(LEFT - 12, line - 6, 'end', contender),
      ...bars.filter(Boolean),
      `<path d="M${LEFT} ${line}H${WIDTH - RIGHT}"/>`,
      text(WIDTH - RIGHT + 12, line - 12, 'start', `${refused} refused`),
      text(WIDTH - RIGHT + 12, line + 4, 'start', `${Math.round(sharePercent)}% of the limit`),
    ];
  });

  function bar(kind: string, x: number, y: number, height: number): string {
    const width = (BIN_SECONDS * scale - 0.6).toFixed(1);
    if (height === 0) return '';
    return `<rect class="${kind}" x="${x.toFixed(1)}" y="${y}" width="${width}" height="${height}"/>`;
  }

  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 30}" role="img">`,
    STYLE,
    text(LEFT, 16, 'start', `${title}: accepted above the line, refused with 429 below`),
    ...ticks.map((second) => text(LEFT + second * scale, bottom + 16, 'middle', `${second} s`)),
    ...strips,
    '</svg>\n',
  ].join('\n');
}

function text(x: number, y: number, anchor: 'start' | 'middle' | 'end', content: string): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${content}</text>`;
}

import type { Run } from './drive.ts';

const WIDTH = 880;
const LEFT = 164;
const RIGHT = 150;
const TOP = 46;
const STRIP = 62;
const BIN_SECONDS = 0.25;
const UP = 36;
const DOWN = 16;
const AXIS_SECONDS = 5;

/** Draws one strip a run: requests that were accepted above the line, those that were refused below it. */
export function drawChart(title: string, runs: readonly Run[]): string {
  const strips = runs.map((run) => ({ run, bins: binsOf(run) }));
  const seconds = Math.ceil(Math.max(...runs.map((run) => run.seconds)) / AXIS_SECONDS) * AXIS_SECONDS;
  const accepted = Math.max(...strips.flatMap(({ bins }) => bins.map((bin) => bin.accepted)));
  const refused = Math.max(1, ...strips.flatMap(({ bins }) => bins.map((bin) => bin.refused)));
  const perRequest = Math.min(UP / accepted, DOWN / refused);
  const height = TOP + runs.length * STRIP + 30;
  const xOf = (second: number) => LEFT + (second / seconds) * (WIDTH - LEFT - RIGHT);
  const bottom = TOP + runs.length * STRIP;

  const body = strips.flatMap(({ run, bins }, index) => {
    const line = TOP + index * STRIP + UP + 4;
    const bar = (second: number, count: number, kind: 'accepted' | 'refused') => {
      const barHeight = count * perRequest;
      const y = kind === 'accepted' ? line - barHeight : line;
      return rectangle(kind, xOf(second), y, xOf(BIN_SECONDS) - LEFT - 0.6, barHeight);
    };
    return [
      text(LEFT - 12, line - 6, 'end', 'name', run.contender),
      ...bins.flatMap((bin, slot) => [
        ...(bin.accepted ? [bar(slot * BIN_SECONDS, bin.accepted, 'accepted')] : []),
        ...(bin.refused ? [bar(slot * BIN_SECONDS, bin.refused, 'refused')] : []),
      ]),
      `<path class="line" d="M${LEFT} ${line}H${round(xOf(run.seconds))}"/>`,
      text(
        WIDTH - RIGHT + 12,
        line - 12,
        'start',
        run.refused > 0 ? 'bad' : 'good',
        `${run.refused} refused`,
      ),
      text(
        WIDTH - RIGHT + 12,
        line + 4,
        'start',
        'note',
        `${Math.round(run.sharePercent)}% of the allowance`,
      ),
    ];
  });
  const ticks = Array.from({ length: seconds / AXIS_SECONDS + 1 }, (_, tick) => tick * AXIS_SECONDS).flatMap(
    (second) => [
      `<path class="grid" d="M${round(xOf(second))} ${TOP - 6}V${bottom}"/>`,
      text(xOf(second), bottom + 16, 'middle', 'note', `${second} s`),
    ],
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escapeText(title)}</title>`,
    STYLE,
    text(LEFT, 16, 'start', 'name', title),
    rectangle('accepted', LEFT, 25, 9, 9),
    text(LEFT + 14, 33, 'start', 'note', 'accepted'),
    rectangle('refused', LEFT + 76, 25, 9, 9),
    text(LEFT + 90, 33, 'start', 'note', 'refused with 429'),
    ...ticks,
    ...body,
    '</svg>',
    '',
  ].join('\n');
}

// Colours that stand out on white and on black; the words follow the reader's scheme.
export const STYLE = `<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.name { font-weight: 600; fill: #1f2328 }
.accepted { fill: #2f81f7 }
.refused { fill: #e5484d }
.bad { fill: #d1242f; font-weight: 600 }
.good { fill: #1a7f37; font-weight: 600 }
.line { stroke: #8c959f; stroke-width: 1 }
.grid { stroke: #8c959f; stroke-width: 0.5; opacity: 0.35 }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1 }
  .name { fill: #f0f6fc }
  .bad { fill: #ff7b72 }
  .good { fill: #56d364 }
}
</style>`;

function binsOf(run: Run): { accepted: number; refused: number }[] {
  const bins = Array.from({ length: Math.ceil(run.seconds / BIN_SECONDS) + 1 }, () => ({
    accepted: 0,
    refused: 0,
  }));
  const startedAt = run.log[0]?.at ?? 0;
  for (const entry of run.log) {
    const bin = bins[Math.floor((entry.at - startedAt) / 1_000 / BIN_SECONDS)];
    if (bin) bin[entry.accepted ? 'accepted' : 'refused'] += 1;
  }
  return bins;
}

export function rectangle(kind: string, x: number, y: number, width: number, height: number): string {
  return `<rect class="${kind}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"/>`;
}

export function text(
  x: number,
  y: number,
  anchor: 'start' | 'middle' | 'end',
  kind: string,
  content: string,
): string {
  return `<text class="${kind}" x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${escapeText(content)}</text>`;
}

function escapeText(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

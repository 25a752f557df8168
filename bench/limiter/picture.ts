import { init } from 'echarts';
import { roundResult } from '../report.ts';

/** The results of a case, as `results/limiter.json` has them. */
interface CaseResult {
  readonly name: string;
  readonly measurements: readonly {
    readonly contender: string;
    readonly median: { readonly refused: number; readonly sharePercent: number };
  }[];
}

/** Each colour has enough contrast on white and on black. The shapes differ for readers who cannot tell the colours apart. */
const MARKS = [
  { color: '#0a7bd6', symbol: 'circle' },
  { color: '#d55e00', symbol: 'triangle' },
  { color: '#009e73', symbol: 'diamond' },
  { color: '#c0609a', symbol: 'rect' },
  { color: '#808080', symbol: 'path://M3 0h4v3h3v4h-3v3h-4v-3h-3v-4h3z' },
] as const;

/** In an image, only CSS knows the colour scheme of the reader. The drawing takes its colour of text from here. */
const STYLE = `<style>
svg { color: #1f2328; background: #fff }
@media (prefers-color-scheme: dark) { svg { color: #e6edf3; background: #0d1117 } }
</style>`;

const TEXT = { color: 'currentColor', fontSize: 14, fontFamily: 'system-ui, sans-serif' };
const LINE = { lineStyle: { color: 'currentColor' } };
const AXIS = {
  scale: true,
  nameTextStyle: TEXT,
  axisLabel: TEXT,
  axisLine: LINE,
  axisTick: { show: false },
  splitLine: { lineStyle: { color: 'currentColor', opacity: 0.15 } },
};

/** Draws the cases as SVG, with one mark for each limiter and case. */
export function drawLimiters(cases: readonly CaseResult[]): string {
  const results = cases.flatMap(({ measurements }) => measurements);
  const contenders = [...new Set(results.map(({ contender }) => contender))];
  const series = contenders.map((name, index) => {
    const mark = MARKS[index];
    if (mark === undefined) throw new Error(`Expected a mark for "${name}"; add it to MARKS`);
    const { color, symbol } = mark;
    // This client comes first. Its marks are filled, and all others are outlines, because outlines hide no other mark.
    const fill = index === 0 ? color : 'none';
    const itemStyle = { color: fill, borderColor: color, borderWidth: 2, opacity: 1 };
    const data = results
      .filter(({ contender }) => contender === name)
      .map(({ median: { refused, sharePercent } }) => [roundResult(sharePercent), refused] as const);
    return { type: 'scatter', name, symbol, symbolSize: 13, itemStyle, data };
  });
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 400, height: 359 });
  chart.setOption({
    animation: false,
    legend: { top: 0, left: 0, itemWidth: 14, itemGap: 21, textStyle: TEXT },
    grid: { top: 103, left: 42, right: 16, bottom: 52 },
    xAxis: {
      ...AXIS,
      name: 'Used share of the limit in % (more is better)',
      nameLocation: 'middle',
      nameGap: 28,
    },
    yAxis: { ...AXIS, name: 'Refused requests (fewer is better)', nameTextStyle: { ...TEXT, align: 'left' } },
    series,
  });
  const svg = chart.renderToSVGString({ useViewBox: true });
  chart.dispose();
  const facts = series.map(({ name, data }) => {
    const marks = data.map(([share, refused]) => `${refused} refused at ${share.toFixed(0)}%`);
    return `${name}: ${marks.join(', ')}.`;
  });
  return finish(svg, facts);
}

/** Adds the colours and the words for screen readers. */
function finish(svg: string, facts: readonly string[]): string {
  const words = [
    '<title id="title">Refused requests against the used share of the limit, for each limiter</title>',
    `<desc id="description">${facts.join('\n')}</desc>`,
  ];
  return (
    svg
      // Remove the styles and data that ECharts adds for the mouse. An image cannot use them, and their names differ in each
      // drawing.
      .replaceAll(/ (?:class|ecmeta_\w+)="[^"]*"/g, '')
      .replace(/<style[\s\S]*<\/style>/, STYLE)
      .replace(
        '>',
        ` role="img" aria-labelledby="title" aria-describedby="description">\n${words.join('\n')}`,
      )
  );
}

import { drawLimiters } from '../../bench/limiter/picture.ts';
import fleet from '../../bench/results/fleet.json' with { type: 'json' };
import limiter from '../../bench/results/limiter.json' with { type: 'json' };
import overhead from '../../bench/results/overhead.json' with { type: 'json' };
import scale from '../../bench/results/scale.json' with { type: 'json' };
import receivers from '../../bench/results/webhooks-receivers.json' with { type: 'json' };
import stores from '../../bench/results/webhooks-stores.json' with { type: 'json' };
import { formatCount, median } from '../../bench/statistics.ts';
import { markdownTable } from '../support/markdown-table.ts';

/** Lists the contenders of several cases in the order in which they appear. */
function listContenders(cases: readonly (readonly { contender: string }[])[]): string[] {
  return [...new Set(cases.flat().map(({ contender }) => contender))];
}

/** Rounds down, so that a ratio below its target does not look as if it reached the target. */
function formatRatio(ratio: number): string {
  return `${(Math.floor(ratio * 100) / 100).toFixed(2)}x`;
}

/** Writes the events per second, and their ratio to a receiver written by hand. */
function formatRate(eventsPerSecond: number, ratio: number | null): string {
  return formatCount(eventsPerSecond) + (ratio === null ? '' : `, ${formatRatio(ratio)}`);
}

/** The page says once that its figures were measured here; a figure from elsewhere says where. */
const USUAL_PLACE = 'Node 20.20.2, 2 x AMD EPYC';

/** Writes a table, and under it when and where it was measured. */
function measuredTable(measuredOn: string, head: readonly string[], rows: readonly string[][]): string {
  return `${markdownTable(head, rows)}\n\nMeasured on ${measuredOn.replace(`, ${USUAL_PLACE}`, '')}.`;
}

function formatEvents({ eventsPerWebhook }: { readonly eventsPerWebhook: number }): string {
  return `${eventsPerWebhook} ${eventsPerWebhook === 1 ? 'event' : 'events'}`;
}

/** Each function writes the last results of a program of bench/ as a table of docs/benchmarks.md. */
export const FIGURES: Readonly<Record<string, () => string>> = {
  'limiter figures': () => {
    const rows = limiter.cases.map(({ name, measurements }) => {
      const cells = measurements.map(({ median }) => `${median.refused}, ${median.sharePercent.toFixed(0)}%`);
      return [name, ...cells];
    });
    const contenders = listContenders(limiter.cases.map(({ measurements }) => measurements));
    return measuredTable(limiter.measuredOn, ['Case', ...contenders], rows);
  },
  'fleet figures': () => {
    const contenders = listContenders(fleet.cases.map(({ runs }) => runs));
    const rows = fleet.cases.map(({ name, runs }) => {
      const cells = contenders.map((contender) => {
        const ofContender = runs.filter((run) => run.contender === contender);
        const share = median(ofContender.map(({ sharePercent }) => sharePercent));
        // Show the refusals of the worst run, because a limit must be kept in every run.
        return `${Math.max(...ofContender.map(({ refused }) => refused))}, ${share.toFixed(0)}%`;
      });
      return [name, ...cells];
    });
    return measuredTable(fleet.measuredOn, ['Case', ...contenders], rows);
  },
  'store figures': () => {
    // A receiver by hand has no row, because each cell has the ratio to it.
    const measured = stores.fleets.filter(({ ratio }) => ratio !== null);
    const rows = [...new Set(measured.map(({ inbox }) => inbox))].map((name) => {
      const cells = measured
        .filter(({ inbox }) => inbox === name)
        .map(({ events, seconds, ratio }) => formatRate(events / seconds, ratio));
      return [name, ...cells];
    });
    const cases = [...new Set(measured.map(formatEvents))];
    return measuredTable(stores.measuredOn, ['Store', ...cases], rows);
  },
  'receiver figures': () => {
    // The table of four receivers shows webhooks that come several times.
    const results = receivers.results.filter(({ copies }) => copies === 1);
    const cases = [...new Set(results.map(formatEvents))];
    const rows = [...new Set(results.map(({ name }) => name))].map((name) => {
      const cells = results
        .filter((result) => result.name === name)
        .map(({ ours, ratio }) => formatRate(ours, ratio));
      return [name, ...cells];
    });
    return measuredTable(receivers.measuredOn, ['Store', ...cases], rows);
  },
  'cost figures': () => {
    const rows = overhead.cpu.map(({ events, costs }) => {
      const cells = costs.map(
        ({ microsecondsPerCall, ratio }) => `${microsecondsPerCall.toFixed(0)} µs, ${ratio.toFixed(2)}x`,
      );
      return [`${events} events`, ...cells];
    });
    return measuredTable(
      overhead.measuredOn,
      ['`results` call', ...listContenders(overhead.cpu.map(({ costs }) => costs))],
      rows,
    );
  },
  'cold start figures': () => {
    // A program by hand has no row, because the program with the client has the ratio to it.
    const shown = overhead.coldStarts.filter(({ program }) => !program.startsWith('by hand'));
    const rows = shown.map(({ program, milliseconds, ratio }) => {
      const time = `${milliseconds.toFixed(0)} ms`;
      return [program, ratio === null ? time : `${time}, ${ratio.toFixed(2)}x`];
    });
    // The table of the costs of a call, above this table, says when both were measured.
    return markdownTable(['Program', 'Time'], rows);
  },
  'scale figures': () => {
    const shown = scale.figures.filter(({ name }) => /^(?:heap|pollMany|createMany)\b/.test(name));
    const rows = shown.map(({ name, found }) => [name, found]);
    return measuredTable(scale.measuredOn, ['Case', 'Measured'], rows);
  },
};

/** Each function draws the picture of this file from the last results of bench/. */
export const PICTURES: Readonly<Record<string, () => string>> = {
  'docs/limiters.svg': () => drawLimiters(limiter.cases),
};

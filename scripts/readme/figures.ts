import { formatPolling } from '../../bench/fleet/polling-figures.ts';
import { drawLimiters, MAIN_CASES } from '../../bench/limiter/picture.ts';
import { formatOverhead } from '../../bench/overhead/figures.ts';
import fleet from '../../bench/results/fleet.json' with { type: 'json' };
import polling from '../../bench/results/fleet-polling.json' with { type: 'json' };
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

/** Writes the events per second and their ratio to a receiver written by hand. */
function formatRates(result: (typeof receivers.results)[number] | undefined): string {
  if (result === undefined) return '';
  const { ours, ratio, must } = result;
  return `${formatCount(ours)}, ${formatRatio(ratio)}${must !== null && ratio < must ? ' (MISSED)' : ''}`;
}

/** Writes a table, and under it where and when it was measured. */
function measuredTable(measuredOn: string, head: readonly string[], rows: readonly string[][]): string {
  return `${markdownTable(head, rows)}\n\nMeasured on ${measuredOn}.`;
}

/** docs/benchmarks.md shows these cases; bench/figures.md shows all of them. */
const MAIN_FLEET_CASES = ['4 processes, sliding', '4 processes, fixed', '8 processes, sliding'];

function limiterTable(cases: typeof limiter.cases): string {
  const rows = cases.map(({ name, measurements }) => {
    const cells = measurements.map(({ median }) => `${median.refused} / ${median.sharePercent.toFixed(0)}%`);
    return [name, ...cells];
  });
  const contenders = listContenders(cases.map(({ measurements }) => measurements));
  return measuredTable(limiter.measuredOn, ['Case', ...contenders], rows);
}

function fleetTable(cases: typeof fleet.cases): string {
  const contenders = listContenders(cases.map(({ runs }) => runs));
  const rows = cases.map(({ name, runs }) => {
    const cells = contenders.map((contender) => {
      const ofContender = runs.filter((run) => run.contender === contender);
      const share = median(ofContender.map(({ sharePercent }) => sharePercent));
      // Show the refusals of the worst run, because a limit must be kept in every run.
      return ofContender.length === 0
        ? ''
        : `${Math.max(...ofContender.map(({ refused }) => refused))} / ${share.toFixed(0)}%`;
    });
    return [name, ...cells];
  });
  return measuredTable(fleet.measuredOn, ['Case', ...contenders], rows);
}

function formatFleetRate({ events, seconds, ratio }: (typeof stores.fleets)[number]): string {
  return formatCount(events / seconds) + (ratio === null ? '' : `, ${formatRatio(ratio)}`);
}

function formatEventsPerWebhook({ eventsPerWebhook }: { readonly eventsPerWebhook: number }): string {
  return `${eventsPerWebhook} ${eventsPerWebhook === 1 ? 'event' : 'events'} per webhook`;
}

/**
 * Each function writes the last results of bench/ as a table, for docs/benchmarks.md, bench/README.md and bench/figures.md, in this
 * order.
 */
export const FIGURES: Readonly<Record<string, () => string>> = {
  'main limiter figures': () => limiterTable(limiter.cases.filter(({ name }) => MAIN_CASES.includes(name))),
  'main fleet figures': () => fleetTable(fleet.cases.filter(({ name }) => MAIN_FLEET_CASES.includes(name))),
  'main store figures': () => {
    const rows = [...new Set(stores.fleets.map(({ inbox }) => inbox))].map((name) => {
      const runs = stores.fleets.filter(({ inbox }) => inbox === name);
      const rates = runs.filter(({ kills }) => kills === 0).map(formatFleetRate);
      const killed = runs.filter(({ kills }) => kills > 0);
      const lost = killed.reduce((total, run) => total + run.lost, 0);
      const repeats = killed.reduce((total, run) => total + run.repeats, 0);
      return [name, ...rates, `${lost}`, `${repeats}`];
    });
    const cases = [...new Set(stores.fleets.map(formatEventsPerWebhook))];
    const head = ['Store', ...cases, 'Lost after kills', 'Handled twice after kills'];
    return measuredTable(stores.measuredOn, head, rows);
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
  'overhead figures': () => formatOverhead(overhead),
  'limiter figures': () => limiterTable(limiter.cases),
  'fleet figures': () => fleetTable(fleet.cases),
  'polling figures': () => formatPolling(polling),
  'store figures': () => {
    const rows = stores.fleets.map((group) => {
      const { inbox, kills, lost, repeats, ratio, must } = group;
      const target = must === null ? '' : `${must}x: ${(ratio ?? 0) >= must ? 'reached' : 'MISSED'}`;
      const results = [formatFleetRate(group), target, `${lost}`, `${repeats}`];
      return [inbox, formatEventsPerWebhook(group), `${kills}`, ...results];
    });
    return measuredTable(
      stores.measuredOn,
      ['Store', 'Webhooks', 'Receivers killed', 'Events per second', 'At least', 'Lost', 'Handled twice'],
      rows,
    );
  },
  'receiver figures': () => {
    const { results } = receivers;
    const formatCase = (result: (typeof results)[number]) =>
      `${formatEventsPerWebhook(result)}, sent ${result.copies === 1 ? 'once' : `${result.copies} times`}`;
    const cases = [...new Set(results.map(formatCase))];
    const rows = [...new Set(results.map(({ name }) => name))].map((name) => {
      const measured = results.filter((result) => result.name === name);
      return [
        name,
        ...cases.map((title) => formatRates(measured.find((result) => formatCase(result) === title))),
      ];
    });
    return measuredTable(receivers.measuredOn, ['Store', ...cases], rows);
  },
  'scale figures': () => {
    const rows = scale.figures.map(({ name, found }) => [name, found]);
    return measuredTable(scale.measuredOn, ['Case', 'Measured'], rows);
  },
};

/** Each function draws the picture of this file from the last results of bench/. */
export const PICTURES: Readonly<Record<string, () => string>> = {
  'docs/limiters.svg': () => drawLimiters(limiter.cases),
};

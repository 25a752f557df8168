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

/** Writes the events per second and their ratio to a receiver written by hand. */
function formatRates(result: { ours: number; ratio: number } | undefined): string {
  if (result === undefined) return '';
  return `${formatCount(result.ours)}, ${result.ratio.toFixed(2)}x`;
}

/** Writes a table, and under it where and when it was measured. */
function measuredTable(measuredOn: string, head: readonly string[], rows: readonly string[][]): string {
  return `${markdownTable(head, rows)}\n\nMeasured on ${measuredOn}.`;
}

/** The documents show the cases that help a user decide; bench/results/ holds all of them. */
const SHOWN_LIMITER_CASES = /^10\/s (?:fixed|sliding)/;
const SHOWN_SCALE_CASES = /heap|1,000,000|50 ms|24 h|interactive/;

/** Each function writes the last results of bench/ as a table. */
export const FIGURES: Readonly<Record<string, () => string>> = {
  'limiter figures': () => {
    const shown = limiter.cases.filter(({ name }) => SHOWN_LIMITER_CASES.test(name));
    const rows = shown.map(({ name, measurements }) => {
      const cells = measurements.map(
        ({ median }) => `${median.refused} / ${median.sharePercent.toFixed(0)}%`,
      );
      return [name, ...cells];
    });
    return measuredTable(
      limiter.measuredOn,
      ['Case', ...listContenders(limiter.cases.map(({ measurements }) => measurements))],
      rows,
    );
  },
  'fleet figures': () => {
    const contenders = listContenders(fleet.cases.map(({ runs }) => runs));
    const rows = fleet.cases.map(({ name, runs }) => {
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
  },
  'store figures': () => {
    const rows = stores.fleets.map((fleet) => {
      const { inbox, kills, events, seconds, lost, repeats } = fleet;
      const ratio = 'ratio' in fleet && typeof fleet.ratio === 'number' ? `, ${fleet.ratio.toFixed(2)}x` : '';
      return [inbox, `${kills}`, formatCount(events / seconds) + ratio, `${lost}`, `${repeats}`];
    });
    return measuredTable(
      stores.measuredOn,
      ['Store', 'Receivers killed', 'Events per second', 'Lost', 'Handled twice'],
      rows,
    );
  },
  'receiver figures': () => {
    const { results } = receivers;
    const formatCase = ({ eventsPerWebhook, copies }: (typeof results)[number]) =>
      `${eventsPerWebhook} ${eventsPerWebhook === 1 ? 'event' : 'events'} per webhook, sent ${copies === 1 ? 'once' : `${copies} times`}`;
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
    const shown = scale.figures.filter(({ name }) => SHOWN_SCALE_CASES.test(name));
    return measuredTable(
      scale.measuredOn,
      ['Case', 'Measured'],
      shown.map(({ name, found }) => [name, found]),
    );
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
};

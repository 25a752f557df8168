import fleet from '../../bench/results/fleet.json' with { type: 'json' };
import limiter from '../../bench/results/limiter.json' with { type: 'json' };
import stores from '../../bench/results/webhooks-stores.json' with { type: 'json' };
import { max, median } from '../../bench/statistics.ts';
import { markdownTable } from '../support/markdown-table.ts';

/** What most people meet, what sets limiters apart, and where this client is the slower one. */
const LIMITER_CASES = ['fixed, jitter 80 ms', 'sliding, jitter 80 ms', 'sliding, handler 500 ms'];
const FLEET_CASES = ['4 processes, sliding', '4 processes, fixed', '8 processes, sliding'];

/** How this client and others keep a limit of 10 per second. */
export function limiterFigures(): string {
  const cases = limiter.cases.filter(({ name }) => LIMITER_CASES.includes(name.replace('10/s ', '')));
  const rows = cases.map(({ name, measurements }) => [
    name.replace('10/s ', ''),
    ...measurements.map((figure) => `${figure.median.refused} / ${figure.median.sharePercent.toFixed(0)}%`),
  ]);
  const contenders = cases[0]?.measurements.map(({ contender }) => contender) ?? [];
  return markdownTable(['The service counts', ...contenders], rows);
}

/** How several processes share a limit: the refusals of the worst round, since a promise holds always or not at all. */
export function fleetFigures(): string {
  const contenders = [...new Set(fleet.cases.flatMap(({ runs }) => runs.map(({ contender }) => contender)))];
  const rows = FLEET_CASES.map((name) => {
    const runs = fleet.cases.find((one) => one.name === name)?.runs ?? [];
    const cells = contenders.map((contender) => {
      const rounds = runs.filter((run) => run.contender === contender);
      const share = median(rounds.map(({ sharePercent }) => sharePercent));
      return `${max(rounds.map(({ refused }) => refused))} / ${share.toFixed(0)}%`;
    });
    return [name, ...cells];
  });
  return markdownTable(['200 calls at 10 per second', ...contenders], rows);
}

/** How the shared stores fare: each first undisturbed, then with receivers that are killed. */
export function storeFigures(): string {
  const rows = stores.fleets.map(({ inbox, kills, events, seconds, lost, repeats }) => {
    const perSecond = Math.round(events / seconds).toLocaleString('en-US');
    return [inbox, `${kills}`, perSecond, `${lost}`, `${repeats}`];
  });
  return markdownTable(['Store', 'Receivers killed', 'Events per second', 'Lost', 'Handled twice'], rows);
}

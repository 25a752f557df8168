import { max, median } from '../../bench/statistics.ts';
import { code, markdownTable } from '../support/markdown-table.ts';
import { found, named, type Results } from './results.ts';

const CASES = ['4 processes, sliding', '4 processes, fixed', '8 processes, sliding'];

/** The contenders, with the words for each. */
const CONTENDERS = {
  RedisLimiter: code('RedisLimiter'),
  'rate-limiter-flexible': `${code('rate-limiter-flexible')}, its queue on Redis`,
  uncoordinated: 'each process on its own',
};

/** All rounds of one contender in one case. */
export interface FleetFigure {
  /** Of the worst round: a promise holds always or not at all. */
  readonly refused: number;
  /** Of the middle round. */
  readonly sharePercent: number;
  readonly commandsPerCall: number;
}

/** Sums the rounds up as `bench/README.md` does. */
export function fleetFigure(
  { fleet }: Results,
  name: string,
  contender: keyof typeof CONTENDERS,
): FleetFigure {
  const runs = named(fleet.cases, name).runs.filter((run) => run.contender === contender);
  const share = median(runs.map(({ sharePercent }) => sharePercent));
  const middle = found(
    runs.find(({ sharePercent }) => sharePercent === share),
    `${contender}: ${name}`,
  );
  return { ...middle, refused: max(runs.map(({ refused }) => refused)) };
}

/** How several processes share a limit of 10 per second. */
export function fleetFigures(results: Results): string {
  // Sound: the keys of an object literal.
  const contenders = Object.keys(CONTENDERS) as (keyof typeof CONTENDERS)[];
  const rows = CASES.map((name) => [
    name,
    ...contenders.map((contender) => {
      const { refused, sharePercent } = fleetFigure(results, name, contender);
      return `${refused} / ${sharePercent.toFixed(0)}%`;
    }),
  ]);
  return markdownTable(['200 calls at 10 per second', ...Object.values(CONTENDERS)], rows);
}

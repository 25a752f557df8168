import type { FleetCase, FleetRun } from '../../test/support/fleet/run.ts';

interface MeasuredCase extends FleetCase {
  readonly name: string;
  readonly target?: { readonly text: string; readonly isReached: (run: FleetRun) => boolean };
}

const fullShare: MeasuredCase['target'] = {
  text: '0 refused, >= 93%, slowest >= 20 of 40, <= 3.5 commands per call, no fallback',
  isReached: (run) =>
    run.refused === 0 &&
    run.lost === 0 &&
    run.sharePercent >= 93 &&
    run.leastServed >= 20 &&
    run.commandsPerCall <= 3.5 &&
    run.fallbacks.length === 0,
};

const FOUR = { mode: 'sliding', processes: 4, calls: 200 } as const;

export const cases: readonly MeasuredCase[] = [
  { ...FOUR, name: '4 processes, sliding', target: fullShare },
  { ...FOUR, name: '4 processes, fixed', mode: 'fixed', target: fullShare },
  { ...FOUR, name: '8 processes, sliding', processes: 8 },
];

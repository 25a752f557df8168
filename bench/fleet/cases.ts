import type { FleetCase, FleetRun } from './run.ts';

export interface MeasuredCase extends FleetCase {
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

const nothingLost: MeasuredCase['target'] = {
  text: '0 refused, 0 lost',
  isReached: ({ refused, lost }) => refused === 0 && lost === 0,
};

const FOUR = { mode: 'sliding', processes: 4, calls: 200 } as const;
/** Only our limiter runs in these cases, because the other cases already compare it with the other limiters. */
const ALONE = { ...FOUR, contenders: ['RedisLimiter'] } as const;

export const cases: readonly MeasuredCase[] = [
  { ...FOUR, name: '2 processes, sliding', processes: 2 },
  { ...FOUR, name: '2 processes, fixed', mode: 'fixed', processes: 2 },
  { ...FOUR, name: '4 processes, sliding', target: fullShare },
  { ...FOUR, name: '4 processes, fixed', mode: 'fixed', target: fullShare },
  { ...FOUR, name: '8 processes, sliding', processes: 8 },
  { ...ALONE, name: '4 processes, sliding, no jitter', jitterMs: 0, target: fullShare },
  {
    ...ALONE,
    name: 'one of 4 killed after 6 s, sliding',
    killAfterSeconds: 6,
    target: {
      text: '0 refused, the share of the killed process used within 2 s',
      isReached: ({ refused, sharePercentAfterKill = 0 }) => refused === 0 && sharePercentAfterKill >= 92,
    },
  },
  {
    ...ALONE,
    name: 'Redis away for 3 s (connections refused), sliding',
    outage: { kind: 'refused', afterSeconds: 5, seconds: 3 },
    target: nothingLost,
  },
  {
    ...ALONE,
    name: 'Redis away for 3 s (no replies), sliding',
    outage: { kind: 'silent', afterSeconds: 5, seconds: 3 },
    target: nothingLost,
  },
  {
    ...ALONE,
    name: 'Redis away for 3 s (killed, empty on return), sliding',
    outage: { kind: 'refused', afterSeconds: 5, seconds: 3 },
    forgetAfterSeconds: 6,
    target: nothingLost,
  },
  {
    ...ALONE,
    name: 'Redis loses its keys (FLUSHALL), sliding',
    forgetAfterSeconds: 5,
    target: {
      text: 'at most 10 refused (one window), 0 lost',
      isReached: ({ refused, lost }) => refused <= 10 && lost === 0,
    },
  },
  {
    ...ALONE,
    name: 'clock of one of 4 is 1 h ahead, sliding',
    clockAheadMs: 3_600_000,
    target: fullShare,
  },
];

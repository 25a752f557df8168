import type { FleetCase, FleetRun } from './run.ts';

/** A case and what we want to see of this package in it. */
export interface MeasuredCase extends FleetCase {
  readonly target?: { readonly text: string; readonly isReached: (run: FleetRun) => boolean };
}

const CALLS = 200;
const SIZES = [2, 4, 8];
const OUTAGE_SECONDS = 3;

const fullShare = {
  text: '0 refused, >= 93%, least served >= 20 of 40, <= 1.8 commands a call, no fallback',
  isReached: ({ refused, sharePercent, lost, leastServed, commandsPerCall, fallbacks }: FleetRun) =>
    refused === 0 &&
    lost === 0 &&
    sharePercent >= 93 &&
    leastServed >= 20 &&
    commandsPerCall <= 1.8 &&
    fallbacks.length === 0,
};

const outageTarget = {
  text: '0 refused, 0 lost',
  isReached: ({ refused, lost }: FleetRun) => refused === 0 && lost === 0,
};

export const cases: readonly MeasuredCase[] = [
  ...SIZES.flatMap((processes) =>
    (['sliding', 'fixed'] as const).map((mode): MeasuredCase => {
      const name = `${processes} processes, ${mode}`;
      return { name, mode, processes, calls: CALLS, ...(processes === 4 ? { target: fullShare } : {}) };
    }),
  ),
  ...(['sliding', 'fixed'] as const).map(
    (mode): MeasuredCase => ({
      name: `4 processes, ${mode}, no jitter`,
      mode,
      processes: 4,
      calls: CALLS,
      jitterMs: 0,
      contenders: ['RedisLimiter'],
      target: fullShare,
    }),
  ),
  {
    name: 'one of 4 killed after 6 s, sliding',
    mode: 'sliding',
    processes: 4,
    calls: CALLS,
    contenders: ['RedisLimiter'],
    killAfterSeconds: 6,
    target: {
      text: '0 refused, its share used within 2 s',
      isReached: ({ refused, sharePercentAfterKill = 0 }) => refused === 0 && sharePercentAfterKill >= 92,
    },
  },
  ...(['refused', 'silent'] as const).map(
    (kind): MeasuredCase => ({
      name: `Redis away for ${OUTAGE_SECONDS} s (${kind === 'refused' ? 'connections refused' : 'no answers'}), sliding`,
      mode: 'sliding',
      processes: 4,
      calls: CALLS,
      contenders: ['RedisLimiter'],
      outage: { kind, afterSeconds: 5, seconds: OUTAGE_SECONDS },
      target: outageTarget,
    }),
  ),
  {
    name: `Redis away for ${OUTAGE_SECONDS} s (killed, empty on return), sliding`,
    mode: 'sliding',
    processes: 4,
    calls: CALLS,
    contenders: ['RedisLimiter'],
    outage: { kind: 'refused', afterSeconds: 5, seconds: OUTAGE_SECONDS },
    forgetAfterSeconds: 6,
    target: outageTarget,
  },
  {
    name: 'Redis loses its keys (FLUSHALL), sliding',
    mode: 'sliding',
    processes: 4,
    calls: CALLS,
    contenders: ['RedisLimiter'],
    forgetAfterSeconds: 5,
    target: {
      text: "at most one window's worth refused, 0 lost",
      isReached: ({ refused, lost }) => refused <= 10 && lost === 0,
    },
  },
  {
    name: 'clock of one of 4 is 1 h ahead, sliding',
    mode: 'sliding',
    processes: 4,
    calls: CALLS,
    contenders: ['RedisLimiter'],
    clockAheadMs: 3_600_000,
    target: fullShare,
  },
];

import { checkCount, checkDelayMs, refuseOption } from '../common/option-checks.ts';
import { type Clock, systemClock } from '../common/timing.ts';
import type { AcquireOptions } from './limiter.ts';

const DEFAULT_MAX_UPLINK_MS = 500;

/** What the limiters of this package have in common, after the checks. */
export interface QueueSettings {
  readonly maxQueue: number;
  readonly maxUplinkMs: number;
  readonly reserve: number | undefined;
  readonly clock: Clock;
}

/** Checks the options that all limiters have, and fills in their defaults. */
export function checkQueueSettings(options: {
  readonly maxQueue?: number | undefined;
  readonly maxUplinkMs?: number | undefined;
  readonly reserve?: number | undefined;
  readonly clock?: Clock | undefined;
}): QueueSettings {
  const { maxQueue = Number.POSITIVE_INFINITY, maxUplinkMs = DEFAULT_MAX_UPLINK_MS, reserve } = options;
  return {
    maxQueue: checkCount('maxQueue', maxQueue, 0, true),
    maxUplinkMs: checkDelayMs('maxUplinkMs', maxUplinkMs),
    reserve: reserve === undefined ? undefined : checkCount('reserve', reserve, 0),
    clock: checkClock(options.clock ?? systemClock),
  };
}

/** Checks how a call wants to wait. */
export function checkWait({ priority, maxWaitMs, maxPauseMs }: AcquireOptions): void {
  if (priority !== 'interactive' && priority !== 'background') {
    refuseOption('priority', '"interactive" or "background"', priority);
  }
  checkPatience('maxWaitMs', maxWaitMs);
  checkPatience('maxPauseMs', maxPauseMs);
}

/** Checks what the first call of a bucket sets. */
export function checkLimits({ limit, maxLimit = Number.POSITIVE_INFINITY }: AcquireOptions) {
  return { limit: checkCount('limit', limit, 1), maxLimit: checkCount('maxLimit', maxLimit, 1, true) };
}

function checkPatience(name: string, value: unknown): void {
  // Infinity is patience, too.
  if (value === undefined || (typeof value === 'number' && value >= 0)) return;
  refuseOption(name, 'a number of milliseconds of 0 or more', value);
}

function checkClock(clock: Clock): Clock {
  const methods = ['now', 'wallNow', 'setTimeout', 'clearTimeout'] as const;
  const isClock = typeof clock === 'object' && methods.every((name) => typeof clock[name] === 'function');
  return isClock ? clock : refuseOption('clock', `an object with the methods ${methods.join(', ')}`, clock);
}

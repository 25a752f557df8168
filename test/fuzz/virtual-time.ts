import FakeTimers from '@sinonjs/fake-timers';
import type fc from 'fast-check';
import { settled } from '../support/settled.ts';
import { must, type Property, property } from './harness.ts';

/** A random number that all waits share, so that a schedule runs the same way every time. */
const CONSTANT_RANDOM = 0.5;

/**
 * Plays a schedule in virtual time. All work without timers runs between two timers. Rejects if the schedule does not end.
 *
 * @param play - plays the schedule
 * @param limitMs - the longest virtual time that the schedule may take
 * @returns the number of timers that are left at the end
 */
async function playInVirtualTime(play: () => Promise<void>, limitMs: number): Promise<number> {
  const clock = FakeTimers.install({
    now: Date.UTC(2026, 10, 28),
    toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'],
  });
  const { random } = Math;
  Math.random = () => CONSTANT_RANDOM;
  try {
    let hasEnded = false;
    const played = play().finally(() => {
      hasEnded = true;
    });
    // The failure is thrown below.
    played.catch(() => {});
    for (;;) {
      // A body of a `Response` needs several turns.
      for (let turn = 0; turn < 3; turn += 1) await settled();
      if (hasEnded) break;
      must(clock.countTimers() > 0, () => `stuck after ${performance.now()} ms: nothing more can happen`);
      must(performance.now() < limitMs, () => `not over after ${performance.now()} ms`);
      clock.next();
    }
    await played;
    return clock.countTimers();
  } finally {
    Math.random = random;
    clock.uninstall();
  }
}

/** Collects broken rules, where a thrown error would be taken for a failure of the service, a store or a callback. */
export class Problems {
  readonly #problems: string[] = [];

  /** Notes a problem unless `isSo`. */
  note(isSo: boolean, broken: () => string): void {
    if (!isSo) this.#problems.push(`${broken()}, ${performance.now()} ms after the start`);
  }

  /** Throws if a problem was noted. */
  check(): void {
    must(this.#problems.length === 0, () => this.#problems.join('\n'));
  }
}

interface Rules {
  /** The longest virtual time of a schedule, in milliseconds. */
  readonly limitMs: number;
  /** True if no timer may be left when a schedule has ended. */
  readonly endsTimers?: boolean;
}

/** A property of schedules that are played in virtual time; `play` rejects if a schedule breaks it. */
export function scheduleProperty<Schedule>(
  name: string,
  numRuns: number,
  schedule: fc.Arbitrary<Schedule>,
  play: (schedule: Schedule) => Promise<void>,
  { limitMs, endsTimers = false }: Rules,
): Property {
  return property(name, numRuns, schedule, async () => {
    let played = Promise.resolve(0);
    return {
      check: async (input) => {
        played = playInVirtualTime(() => play(input), limitMs);
        const timers = await played;
        must(!endsTimers || timers === 0, () => `${timers} timers are left`);
      },
      // A schedule that fast-check has stopped waiting for still uses the fake timers.
      stop: async () => void (await played.catch(() => {})),
    };
  });
}

/** Waits in virtual time; rejects with the signal's own reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
  });
}

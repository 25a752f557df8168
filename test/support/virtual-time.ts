import { vi } from 'vitest';
import { settled } from './settled.ts';

// Kept from before fake timers replace it.
const { setImmediate } = globalThis;

/**
 * Runs a call under fake timers until it settles, however long it waits, and returns its outcome.
 *
 * All work without timers runs between two timers, so no timer overtakes a response.
 */
export async function settleInVirtualTime<T>(start: () => PromiseLike<T>): Promise<T> {
  const isInstalledHere = !vi.isFakeTimers();
  if (isInstalledHere) vi.useFakeTimers();
  try {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    const outcome = Promise.resolve(start());
    outcome.then(settle, settle);
    for (;;) {
      for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
      if (isSettled) return await outcome;
      await vi.advanceTimersToNextTimerAsync();
    }
  } finally {
    if (isInstalledHere) vi.useRealTimers();
  }
}

/** Short ways to read and advance the fake timers of `useVirtualTime`. */
export const clock = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  advance: async (ms: number) => {
    await settled();
    await vi.advanceTimersByTimeAsync(ms);
    await settled();
  },
  get timerCount() {
    return vi.getTimerCount();
  },
};

/** Installs fake timers until the test ends; promises settle in real turns of the event loop. */
export function useVirtualTime(): typeof clock {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
  return clock;
}

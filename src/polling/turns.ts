import pThrottle from 'p-throttle';
import { onAbort } from '../common/abort.ts';
import { MAX_TIMER_MS, systemClock } from '../common/clock.ts';

/**
 * Builds a function whose promises resolve in order, at most `maxPerSecond` a second.
 *
 * p-throttle reads the wall clock: if that clock is set back by an hour, p-throttle waits an hour longer. If a turn is not
 * granted within an interval on our clock, we abort the throttle and create another.
 *
 * @param signal - rejects all turns when it aborts
 */
export function createTurns(maxPerSecond: number, signal: AbortSignal): () => Promise<void> {
  const interval = 1000 / maxPerSecond;
  // This time is one millisecond longer than the interval, so the timer of p-throttle fires before ours.
  const patienceMs = Math.min(Math.ceil(interval) + 1, MAX_TIMER_MS);
  let throttle = createThrottle(interval);
  let lastTurn = Promise.resolve();
  onAbort(signal, () => throttle.abort());

  async function takeTurn(): Promise<void> {
    signal.throwIfAborted();
    const timer = systemClock.setTimeout(throttle.abort, patienceMs);
    try {
      await throttle.take();
    } catch {
      signal.throwIfAborted();
      throttle = createThrottle(interval);
      await throttle.take();
    } finally {
      systemClock.clearTimeout(timer);
    }
  }

  return () => {
    lastTurn = lastTurn.then(takeTurn, takeTurn);
    return lastTurn;
  };
}

function createThrottle(interval: number) {
  const controller = new AbortController();
  const take = pThrottle({ limit: 1, interval, strict: true, signal: controller.signal })(() => {});
  return { take, abort: () => controller.abort(new Error('The turn was not granted')) };
}

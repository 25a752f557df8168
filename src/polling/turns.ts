import pThrottle from 'p-throttle';
import { linkedController } from '../common/abort.ts';
import { systemClock } from '../common/clock.ts';

/**
 * Builds a function that resolves at most `maxPerSecond` times a second, to one waiting call after another.
 *
 * p-throttle reads the wall clock, and would wait as long as that clock was set back. A turn that it has not granted after an
 * interval on our clock is due, so that throttle is aborted and a new one grants the turn.
 */
export function createTurns(maxPerSecond: number, signal: AbortSignal): () => Promise<void> {
  const interval = 1000 / maxPerSecond;
  const createThrottle = () => {
    const { controller, unsubscribe } = linkedController(signal);
    const take = pThrottle({ limit: 1, interval, strict: true, signal: controller.signal })(() => {});
    const abort = () => {
      unsubscribe();
      controller.abort(new Error('The throttle waited for too long'));
    };
    return { take, abort };
  };
  let throttle: ReturnType<typeof createThrottle> | undefined;
  let lastTurn = Promise.resolve();

  async function takeTurn(): Promise<void> {
    signal.throwIfAborted();
    throttle ??= createThrottle();
    const { take, abort } = throttle;
    const timer = systemClock.setTimeout(abort, Math.ceil(interval));
    try {
      await take();
    } catch {
      signal.throwIfAborted();
      throttle = createThrottle();
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

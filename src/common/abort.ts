import { systemClock } from './clock.ts';

/** All calls that share a signal share one listener, because Node warns of a leak where a signal has many. */
const listenersOf = new WeakMap<AbortSignal, { callbacks: Set<() => void>; listener: () => void }>();

/** Runs `callback` once when `signal` aborts, or at once if it has aborted. Returns a function that takes the callback back. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    callback();
    return () => {};
  }
  const { callbacks, listener } = listenersOf.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0 || signal.aborted) return;
    listenersOf.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function listen(signal: AbortSignal) {
  const callbacks = new Set<() => void>();
  const listener = () => {
    listenersOf.delete(signal);
    for (const callback of callbacks) callback();
  };
  const known = { callbacks, listener };
  listenersOf.set(signal, known);
  signal.addEventListener('abort', listener, { once: true });
  return known;
}

/** A controller that also aborts when `signal` does, for the same reason, until `unsubscribe` is called. */
export function linkedController(signal: AbortSignal | undefined): {
  readonly controller: AbortController;
  readonly unsubscribe: () => void;
} {
  const controller = new AbortController();
  return { controller, unsubscribe: onAbort(signal, () => controller.abort(signal?.reason)) };
}

/** Waits for `ms` milliseconds, at most 2^31 - 1, or rejects with the signal's own reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let unsubscribe = () => {};
    const timer = systemClock.setTimeout(() => {
      unsubscribe();
      resolve();
    }, ms);
    if (signal === undefined) return;
    unsubscribe = onAbort(signal, () => {
      systemClock.clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

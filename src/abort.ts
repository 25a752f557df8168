/** The callbacks of each signal; one listener a signal, however many calls share it, so Node never warns of a leak. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Runs `callback` once when `signal` aborts; at once when it already has.
 *
 * @returns a function that takes the callback back
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  const callbacks = callbacksOf.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
  };
}

function listen(signal: AbortSignal): Set<() => void> {
  const callbacks = new Set<() => void>();
  callbacksOf.set(signal, callbacks);
  signal.addEventListener(
    'abort',
    () => {
      callbacksOf.delete(signal);
      for (const callback of callbacks) callback();
    },
    { once: true },
  );
  return callbacks;
}

/**
 * A controller that also aborts when `signal` does, for the same reason.
 *
 * @returns the controller, and a function that unties it
 */
export function linkedController(signal: AbortSignal): {
  readonly controller: AbortController;
  readonly takeBack: () => void;
} {
  const controller = new AbortController();
  return { controller, takeBack: onAbort(signal, () => controller.abort(signal.reason)) };
}

/**
 * Waits for `ms` milliseconds, or rejects with the signal's own reason.
 *
 * The longest wait is 2^31 - 1 milliseconds, the longest a timer can hold.
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let takeBack = () => {};
    const timer = setTimeout(() => {
      takeBack();
      resolve();
    }, ms);
    if (signal !== undefined) {
      takeBack = onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }
  });
}

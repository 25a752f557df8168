/** All calls that share a signal share one listener, because Node warns of a leak if a signal has many. */
const listenersBySignal = new WeakMap<AbortSignal, { callbacks: Set<() => void>; listener: () => void }>();

/** Runs `callback` once when `signal` aborts, or at once if it has aborted. Returns a function that removes the callback. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    callback();
    return () => {};
  }
  const { callbacks, listener } = listenersBySignal.get(signal) ?? listen(signal);
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0 || signal.aborted) return;
    listenersBySignal.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function listen(signal: AbortSignal) {
  const callbacks = new Set<() => void>();
  const listener = () => {
    listenersBySignal.delete(signal);
    for (const callback of callbacks) callback();
  };
  const known = { callbacks, listener };
  // Remember only a listener that was added: the signal may be another object that throws.
  signal.addEventListener('abort', listener, { once: true });
  listenersBySignal.set(signal, known);
  return known;
}

/** A controller that also aborts when `signal` does, with the same reason, until `unsubscribe` is called. */
export function linkedController(signal: AbortSignal | undefined): {
  readonly controller: AbortController;
  readonly unsubscribe: () => void;
} {
  const controller = new AbortController();
  return { controller, unsubscribe: onAbort(signal, () => controller.abort(signal?.reason)) };
}

/** Waits for `work`. If `signal` aborts first, rejects with the signal's own reason, and `work` goes on. */
export async function raceAbort<T>(work: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  let unsubscribe = () => {};
  const aborted = new Promise<never>((_, reject) => {
    unsubscribe = onAbort(signal, () => reject(signal.reason));
  });
  return await Promise.race([work, aborted]).finally(unsubscribe);
}

/** Like `linkedController`, but creates the controller only when its signal is read or it aborts, because creating one is slow. */
export class LazyController {
  #parent: AbortSignal | undefined;
  #controller: AbortController | undefined;
  #unsubscribe = () => {};

  constructor(parent: AbortSignal | undefined) {
    this.#parent = parent;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const { controller, unsubscribe } = linkedController(this.#parent);
      this.#controller = controller;
      this.#unsubscribe = unsubscribe;
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }

  /** From now on, the controller does not abort with its parent any more. */
  unlink(): void {
    this.#unsubscribe();
    this.#parent = undefined;
  }
}

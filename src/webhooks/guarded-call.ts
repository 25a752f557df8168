import { onAbort } from '../common/timing.ts';
import { TrackingError } from '../errors.ts';

/** A callback under way: can be told to stop, and is given up on after a while. */
export class GuardedCall {
  readonly #controller = new AbortController();

  /** Aborts when the callback should stop. Made on first use: most callbacks never look, and a signal is costly. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Tells the callback to stop, and leaves it to the callback when. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /**
   * Settles as the callback does; rejects and aborts after `timeoutMs`.
   *
   * @param parent - its abort is passed on
   */
  async run(callback: () => unknown, timeoutMs: number, parent: AbortSignal | undefined): Promise<void> {
    const stopListening = parent && onAbort(parent, () => this.abort(parent.reason));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new TrackingError(`Expected the webhook callback to finish within ${timeoutMs} ms`);
        this.abort(error);
        reject(error);
      }, timeoutMs);
      // A callback that waits for nothing must not keep the process alive.
      timer.unref?.();
    });
    try {
      await Promise.race([timeout, callback()]);
    } finally {
      clearTimeout(timer);
      stopListening?.();
    }
  }
}

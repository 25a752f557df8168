import { onAbort } from '../common/timing.ts';

/**
 * A stream that is read like an async generator and can be left at any moment.
 *
 * A plain async generator that waits for its next timer can't be left: its `return()` queues behind the wait. Here
 * `return()` and an abort end the wait at once, so no timer and no request outlives the loop.
 */
export abstract class PullStream<T> implements AsyncGenerator<T, void, undefined> {
  readonly #callerSignal: AbortSignal | undefined;
  readonly #controller = new AbortController();
  #source: AsyncGenerator<T, void, undefined> | undefined;
  #takeBack: (() => void) | undefined;
  #wasLeft = false;

  /** @internal */
  constructor(callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal;
  }

  /**
   * Makes the items; called when the first one is asked for.
   *
   * @param signal - aborts with the caller's reason, and when the stream has ended or was left
   */
  protected abstract produce(signal: AbortSignal): AsyncGenerator<T, void, undefined>;

  /**
   * The next item, as soon as there is one.
   *
   * @throws what ended the stream early; the signal's own reason on abort
   */
  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#wasLeft) return { done: true, value: undefined };
    this.#source ??= this.#open();
    try {
      const result = await this.#source.next();
      if (!result.done) return result;
    } catch (error) {
      this.#stop();
      if (!this.#wasLeft) throw error;
    }
    this.#stop();
    return { done: true, value: undefined };
  }

  /** True once nothing more will come. */
  protected get hasEnded(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Leaves the stream: timers stop, and nothing more is sent. A `break` out of `for await` does this by itself. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.#wasLeft = true;
    this.#stop();
    await this.#source?.return().catch(() => {});
    return { done: true, value: undefined };
  }

  /** Leaves the stream and rejects with `error`. */
  async throw(error: unknown): Promise<IteratorResult<T, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Leaves the stream at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** Whatever is still under way ends now. */
  #stop(): void {
    this.#takeBack?.();
    this.#controller.abort(new Error('The stream has ended'));
  }

  #open(): AsyncGenerator<T, void, undefined> {
    const signal = this.#callerSignal;
    if (signal !== undefined) this.#takeBack = onAbort(signal, () => this.#controller.abort(signal.reason));
    return this.produce(this.#controller.signal);
  }
}

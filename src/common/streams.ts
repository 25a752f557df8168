import { onAbort, raceAbort } from './abort.ts';
import { refuseOption } from './check-options.ts';

/**
 * A stream that can be left at any moment. `return()` of a plain async generator takes effect only when the generator's current
 * `await` ends. `return()` of this class first aborts a signal that ends the `await`, so no timer and no request outlives the loop.
 */
export abstract class PullStream<T> implements AsyncGenerator<T, void, undefined> {
  readonly #callerSignal: AbortSignal | undefined;
  readonly #controller = new AbortController();
  #items: AsyncGenerator<T, void, undefined> | undefined;
  #unsubscribe = () => {};
  #wasLeft = false;

  /** @internal */
  constructor(callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal;
  }

  /** Produces the items; the first read calls it. Every wait in it must end when `endSignal` aborts. */
  protected abstract produce(): AsyncGenerator<T, void, undefined>;

  /** Aborts when the stream ends. */
  protected get endSignal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Returns the next item. Throws the error that ended the stream early, or the signal's own reason on abort. */
  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#wasLeft) return { done: true, value: undefined };
    this.#items ??= this.#open();
    try {
      const result = await this.#items.next();
      if (!result.done) return result;
    } catch (error) {
      this.#stop();
      if (!this.#wasLeft) throw error;
    }
    this.#stop();
    return { done: true, value: undefined };
  }

  /** Leaves the stream: timers stop, and nothing more is sent. A `break` out of `for await` calls it. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.#wasLeft = true;
    this.#stop();
    await this.#items?.return().catch(() => {});
    return { done: true, value: undefined };
  }

  async throw(error: unknown): Promise<IteratorResult<T, undefined>> {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #open(): AsyncGenerator<T, void, undefined> {
    const signal = this.#callerSignal;
    if (signal !== undefined)
      this.#unsubscribe = onAbort(signal, () => this.#controller.abort(signal.reason));
    return this.produce();
  }

  #stop(): void {
    this.#unsubscribe();
    this.#controller.abort(new Error('The stream has ended'));
  }
}

/** Reads an iterable or async iterable item by item; an abort ends the wait for an item. */
export class SourceReader<T> {
  readonly #iterator: Iterator<T> | AsyncIterator<T>;

  constructor(source: Iterable<T> | AsyncIterable<T>) {
    this.#iterator =
      Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  }

  async next(signal: AbortSignal): Promise<IteratorResult<T>> {
    signal.throwIfAborted();
    const item = this.#iterator.next();
    // A synchronous source needs no race, which would cost five promises for each item.
    if (!('then' in item)) return item;
    return await raceAbort(item, signal);
  }

  /** Calls `return` of the source and does not wait for it, because it may never settle. */
  close(): void {
    const returnSource = async () => await this.#iterator.return?.();
    // The stream has ended, so nobody would see an error of the source.
    returnSource().catch(() => {});
  }
}

/** Refuses a value that is not iterable, and a string, which is never meant as a list of its characters. */
export function checkIterable(name: string, value: unknown): void {
  const isObject = typeof value === 'object' && value !== null;
  if (isObject && (Symbol.iterator in value || Symbol.asyncIterator in value)) return;
  refuseOption(name, 'an iterable or async iterable', value);
}

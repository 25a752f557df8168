import { onAbort } from '../common/abort.ts';
import { refuseOption } from '../common/option-checks.ts';

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
  #unsubscribe: (() => void) | undefined;
  #wasLeft = false;

  /** @internal */
  constructor(callerSignal: AbortSignal | undefined) {
    this.#callerSignal = callerSignal;
  }

  /** Makes the items from when the first is asked for; `signal` aborts when the stream has ended or was left. */
  protected abstract produce(signal: AbortSignal): AsyncGenerator<T, void, undefined>;

  /** True once nothing more will come. */
  protected get hasEnded(): boolean {
    return this.#controller.signal.aborted;
  }

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

  #open(): AsyncGenerator<T, void, undefined> {
    const signal = this.#callerSignal;
    if (signal !== undefined)
      this.#unsubscribe = onAbort(signal, () => this.#controller.abort(signal.reason));
    return this.produce(this.#controller.signal);
  }

  /** Whatever is still under way ends now. */
  #stop(): void {
    this.#unsubscribe?.();
    this.#controller.abort(new Error('The stream has ended'));
  }
}

/** An item of a source, in an object of its own so that `undefined` can be one. */
interface Read<T> {
  readonly item: T;
}

/** Reads an iterable or async iterable item by item, and can be stopped while it waits for one. */
export class SourceReader<T> {
  readonly #source: Iterable<T> | AsyncIterable<T>;
  #iterator: Iterator<T> | AsyncIterator<T> | undefined;
  #hasEnded = false;

  constructor(source: Iterable<T> | AsyncIterable<T>) {
    this.#source = source;
  }

  /**
   * The next item; undefined at the end. It comes without a promise where the source needs none: a promise for each of
   * a million items costs more than the items.
   *
   * @throws what the source throws; the signal's own reason on abort
   */
  next(signal: AbortSignal): Read<T> | undefined | Promise<Read<T> | undefined> {
    signal.throwIfAborted();
    if (this.#hasEnded) return undefined;
    try {
      this.#iterator ??= iteratorOf(this.#source);
      const result = this.#iterator.next();
      return isPromiseLike(result) ? this.#wait(result, signal) : this.#take(result);
    } catch (error) {
      this.#hasEnded = true;
      throw error;
    }
  }

  /** Lets the source know that nothing more will be read; does not wait for it, as it may never respond. */
  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    try {
      void Promise.resolve(this.#iterator?.return?.()).catch(() => {});
    } catch {
      // Whoever leaves does not want to know.
    }
  }

  #wait(result: PromiseLike<IteratorResult<T>>, signal: AbortSignal): Promise<Read<T> | undefined> {
    return new Promise((resolve, reject) => {
      const unsubscribe = onAbort(signal, () => reject(signal.reason));
      const settled = Promise.resolve(result).finally(unsubscribe);
      settled
        .then((value) => resolve(this.#take(value)))
        .catch((error) => {
          this.#hasEnded = true;
          reject(error);
        });
    });
  }

  #take(result: IteratorResult<T>): Read<T> | undefined {
    if (!result.done) return { item: result.value };
    this.#hasEnded = true;
    return undefined;
  }
}

/** By shape: a stream of Node has promises of another realm where a test runner has a realm of its own. */
function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

function iteratorOf<T>(source: Iterable<T> | AsyncIterable<T>): Iterator<T> | AsyncIterator<T> {
  return Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
}

/** Rejects what can't be iterated, and a string, which never means its letters. */
export function checkIterable(name: string, value: unknown): void {
  const isObject = typeof value === 'object' && value !== null;
  if (isObject && (Symbol.iterator in value || Symbol.asyncIterator in value)) return;
  refuseOption(name, 'an iterable or async iterable', value);
}

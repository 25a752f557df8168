import { refuseOption } from '../common/option-checks.ts';
import { onAbort } from '../common/timing.ts';

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
  next(signal: AbortSignal): { readonly item: T } | undefined | Promise<{ readonly item: T } | undefined> {
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

  /** Tells the source that nothing more will be read; does not wait for it, as it may never answer. */
  close(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    try {
      void Promise.resolve(this.#iterator?.return?.()).catch(() => {});
    } catch {
      // Whoever leaves does not want to know.
    }
  }

  #wait(
    result: PromiseLike<IteratorResult<T>>,
    signal: AbortSignal,
  ): Promise<{ readonly item: T } | undefined> {
    return new Promise((resolve, reject) => {
      const takeBack = onAbort(signal, () => reject(signal.reason));
      result.then(
        (value) => {
          takeBack();
          resolve(this.#take(value));
        },
        (error) => {
          takeBack();
          this.#hasEnded = true;
          reject(error);
        },
      );
    });
  }

  #take(result: IteratorResult<T>): { readonly item: T } | undefined {
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

/**
 * Checks that something can be iterated; a string can, and never means its letters.
 *
 * @throws ConfigurationError naming it
 */
export function checkIterable(name: string, value: unknown): void {
  const isObject = typeof value === 'object' && value !== null;
  if (isObject && (Symbol.iterator in value || Symbol.asyncIterator in value)) return;
  refuseOption(name, 'an iterable or async iterable', value);
}

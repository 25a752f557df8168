import { getEventListeners } from 'node:events';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { checkIterable, PullStream, SourceReader } from '../../src/trackers/streams.ts';

/** Counts up, and notes how it is used. */
class Counter extends PullStream<number> {
  readonly seen: { signal?: AbortSignal; cleanedUp?: boolean } = {};
  readonly #upTo: number;

  constructor(upTo: number, signal?: AbortSignal) {
    super(signal);
    this.#upTo = upTo;
  }

  protected override async *produce(signal: AbortSignal): AsyncGenerator<number, void, undefined> {
    this.seen.signal = signal;
    try {
      for (let count = 1; count <= this.#upTo; count += 1) {
        signal.throwIfAborted();
        yield count;
      }
    } finally {
      this.seen.cleanedUp = true;
    }
  }
}

test('read to its end → every item, and its signal aborts so that nothing goes on', async () => {
  const counter = new Counter(3);
  const items: number[] = [];
  for await (const item of counter) items.push(item);
  expect(items).toEqual([1, 2, 3]);
  expect(counter.seen.signal?.aborted).toBe(true);
  expect(await counter.next()).toEqual({ done: true, value: undefined });
});

test('return() before the first read → nothing ever begins', async () => {
  const counter = new Counter(3);
  await counter.return();
  expect(await counter.next()).toEqual({ done: true, value: undefined });
  expect(counter.seen).toEqual({});
});

test('throw() → cleans up, and rejects with that error', async () => {
  const counter = new Counter(3);
  await counter.next();
  await expect(counter.throw(new Error('mine'))).rejects.toThrow('mine');
  expect(counter.seen.cleanedUp).toBe(true);
});

test('await using → the end of the block leaves the stream', async () => {
  const counter = new Counter(3);
  {
    await using stream = counter;
    await stream.next();
  }
  expect(counter.seen.cleanedUp).toBe(true);
});

test("the caller's signal aborts → the next read rejects with its reason", async () => {
  const controller = new AbortController();
  const counter = new Counter(3, controller.signal);
  await counter.next();
  controller.abort('enough');
  await expect(counter.next()).rejects.toBe('enough');
  expect(counter.seen.cleanedUp).toBe(true);
});

test('100 streams on one signal → one listener, and none once they are read to their end', async () => {
  const { signal } = new AbortController();
  const counters = Array.from({ length: 100 }, () => new Counter(1, signal));
  for (const counter of counters) await counter.next();
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const counter of counters) {
    while (!(await counter.next()).done) {
      // Read on.
    }
  }
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

const signal = new AbortController().signal;

test('an array → its items, without a promise', () => {
  const reader = new SourceReader(['a', 'b']);
  expect([reader.next(signal), reader.next(signal), reader.next(signal), reader.next(signal)]).toEqual([
    { item: 'a' },
    { item: 'b' },
    undefined,
    undefined,
  ]);
});

test('an async generator → its items', async () => {
  const reader = new SourceReader(
    (async function* () {
      yield 'a';
      yield undefined;
    })(),
  );
  expect(await reader.next(signal)).toEqual({ item: 'a' });
  expect(await reader.next(signal)).toEqual({ item: undefined });
  expect(await reader.next(signal)).toBeUndefined();
});

test('promises of another realm → are awaited like any other', async () => {
  const next = (): PromiseLike<IteratorResult<string>> =>
    runInNewContext("Promise.resolve({ done: false, value: 'a' })");
  const iterator = { next } as AsyncIterator<string>; // An async iterator may hand out any promise.
  const reader = new SourceReader({ [Symbol.asyncIterator]: () => iterator });
  expect(await reader.next(signal)).toEqual({ item: 'a' });
});

test.each([
  [
    'throws',
    () => {
      throw new Error('mine');
    },
  ],
  ['rejects', async () => Promise.reject(new Error('mine'))],
])('a source that %s again and again → its own error once, then the end', async (_, fail) => {
  const returned = vi.fn(async () => ({ done: true as const, value: undefined }));
  const reader = new SourceReader<never>({
    [Symbol.asyncIterator]: () => ({ next: fail, return: returned }),
  });
  await expect(async () => await reader.next(signal)).rejects.toThrow('mine');
  expect(reader.next(signal)).toBeUndefined();
  reader.close();
  expect(returned).not.toHaveBeenCalled();
});

test('an abort while the source waits → rejects with the reason at once', async () => {
  const controller = new AbortController();
  const reader = new SourceReader({
    [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }),
  });
  const pending = reader.next(controller.signal);
  controller.abort('enough');
  await expect(pending).rejects.toBe('enough');
});

test('closed in the middle → the source is told once, and asked no more', () => {
  const next = vi.fn(() => ({ done: false as const, value: 'a' }));
  const returned = vi.fn(() => ({ done: true as const, value: undefined }));
  const reader = new SourceReader({ [Symbol.iterator]: () => ({ next, return: returned }) });
  reader.next(signal);
  reader.close();
  reader.close();
  expect(returned).toHaveBeenCalledOnce();
  expect(reader.next(signal)).toBeUndefined();
  expect(next).toHaveBeenCalledOnce();
});

test('closed after the end, or before the start → the source is not told', () => {
  const returned = vi.fn((): IteratorReturnResult<undefined> => ({ done: true, value: undefined }));
  const empty: Iterable<string> = {
    [Symbol.iterator]: () => ({ next: () => ({ done: true, value: undefined }), return: returned }),
  };
  const ended = new SourceReader(empty);
  ended.next(signal);
  ended.close();
  new SourceReader(empty).close();
  expect(returned).not.toHaveBeenCalled();
});

test.each([
  ['rejects', async () => Promise.reject(new Error('late'))],
  [
    'throws',
    () => {
      throw new Error('at once');
    },
  ],
])('a source whose return() %s → closing does not', async (_, fail) => {
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: 1 }), return: fail }),
  };
  const reader = new SourceReader(source);
  await reader.next(signal);
  expect(() => reader.close()).not.toThrow();
});

test.each([['text'], [undefined], [null], [5], [{}]])(
  'checkIterable(%j) → names what was expected',
  (value) => {
    expect(() => checkIterable('inputs', value)).toThrow(
      /^Expected `inputs` to be an iterable or async iterable, got/,
    );
  },
);

import { expect, test, vi } from 'vitest';
import { PullStream } from '../../src/trackers/streams.ts';

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

test('100 streams read to their end on one signal → one listener', async () => {
  const { signal } = new AbortController();
  const listen = vi.spyOn(signal, 'addEventListener');
  for (let stream = 0; stream < 100; stream += 1) {
    const counter = new Counter(1, signal);
    while (!(await counter.next()).done) {
      // Read on.
    }
  }
  expect(listen).toHaveBeenCalledOnce();
});

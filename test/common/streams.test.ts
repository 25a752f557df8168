import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { SourceReader } from '../../src/common/streams.ts';

test('items of an asynchronous source → leave no listener on the signal', async () => {
  async function* numbers() {
    yield 1;
    yield 2;
  }
  const { signal } = new AbortController();
  const reader = new SourceReader(numbers());
  for (const item of [{ value: 1 }, { value: 2 }, { done: true }]) {
    const next = reader.next(signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    expect(await next).toMatchObject(item);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  }
});

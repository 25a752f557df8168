import { describe, expect, test, vi } from 'vitest';
import { ApiPromise, type CallOutcome } from '../../src/http/api-promise.ts';
import { rejectionOf } from '../support/make-client.ts';

function outcome<T>(data: T): CallOutcome<T> {
  const rateLimit = { limit: 10, remaining: 9, resetMs: undefined };
  return {
    data,
    details: () => ({
      data,
      response: new Response('x'),
      requestId: 'req-1',
      rateLimit,
      attempts: 2,
      mismatched: [],
    }),
  };
}

function makePromise<T>(data: T) {
  const start = vi.fn(async () => outcome(data));
  return { start, promise: new ApiPromise(start) };
}

describe('laziness', () => {
  test('construction → nothing starts', async () => {
    const { start } = makePromise(1);
    await Promise.resolve();
    expect(start).not.toHaveBeenCalled();
  });

  test.each([
    ['await', (promise: ApiPromise<number>) => promise],
    ['then', (promise: ApiPromise<number>) => promise.then()],
    ['catch', (promise: ApiPromise<number>) => promise.catch(() => {})],
    ['finally', (promise: ApiPromise<number>) => promise.finally(() => {})],
    ['withResponse', (promise: ApiPromise<number>) => promise.withResponse()],
    ['Promise.all', (promise: ApiPromise<number>) => Promise.all([promise])],
  ])('%s → starts', async (_name, use) => {
    const { start, promise } = makePromise(1);
    await use(promise);
    expect(start).toHaveBeenCalledOnce();
  });

  test('several uses → one start, the same result', async () => {
    const { start, promise } = makePromise({ id: 1 });
    const [first, second, { data }] = await Promise.all([promise, promise.then(), promise.withResponse()]);
    expect(start).toHaveBeenCalledOnce();
    expect(second).toBe(first);
    expect(data).toBe(first);
  });

  test('a map that nobody awaits → nothing starts', async () => {
    const { start, promise } = makePromise(1);
    promise.map((value) => value + 1);
    await Promise.resolve();
    expect(start).not.toHaveBeenCalled();
  });
});

describe('results', () => {
  test('withResponse → what came with the data', async () => {
    const { promise } = makePromise('data');
    const result = await promise.withResponse();
    expect(result).toMatchObject({ data: 'data', requestId: 'req-1', attempts: 2, rateLimit: { limit: 10 } });
    expect(await result.response.text()).toBe('x');
  });

  test('map → the changed data, also with response', async () => {
    const { start, promise } = makePromise(1);
    const mapped = promise.map((value) => value + 1);
    expect(await mapped).toBe(2);
    expect(await mapped.withResponse()).toMatchObject({ data: 2, requestId: 'req-1' });
    expect(await promise).toBe(1);
    expect(start).toHaveBeenCalledOnce();
  });

  test('a map that throws → rejects with that', async () => {
    const failure = new Error('map');
    const mapped = makePromise(1).promise.map(() => {
      throw failure;
    });
    expect(await rejectionOf(mapped)).toBe(failure);
  });

  test('a failing call → every use rejects with the same error', async () => {
    const failure = new Error('call');
    const promise = new ApiPromise<number>(() => Promise.reject(failure));
    expect(await rejectionOf(promise)).toBe(failure);
    expect(await rejectionOf(promise.withResponse())).toBe(failure);
    expect(await promise.catch((error: unknown) => error)).toBe(failure);
  });

  test('finally → runs, and the data pass through', async () => {
    const onFinally = vi.fn(() => 'other');
    expect(await makePromise('data').promise.finally(onFinally)).toBe('data');
    expect(onFinally).toHaveBeenCalledOnce();
  });

  test('its tag → ApiPromise', () => {
    expect(Object.prototype.toString.call(makePromise(1).promise)).toBe('[object ApiPromise]');
  });
});

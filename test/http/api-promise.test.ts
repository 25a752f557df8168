import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { ApiPromise, type CallOutcome } from '../../src/http/api-promise.ts';
import { catchRejection } from '../support/make-client.ts';
import { settled } from '../support/settled.ts';

function outcome<T>(data: T): CallOutcome<T> {
  const rateLimit = { limit: 10, remaining: 9, resetMs: undefined };
  return {
    data,
    mismatched: [],
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
  return new ApiPromise(Promise.resolve(outcome(data)));
}

/** Returns the reasons of the unhandled rejections during `run`. */
async function collectUnhandled(run: () => unknown): Promise<unknown[]> {
  const reasons: unknown[] = [];
  const collect = (reason: unknown) => reasons.push(reason);
  process.on('unhandledRejection', collect);
  try {
    await run();
    // Node looks for unhandled rejections when the microtasks are done.
    await settled();
    return reasons;
  } finally {
    process.off('unhandledRejection', collect);
  }
}

describe('a real promise', () => {
  test.each([
    ['then', (promise: ApiPromise<number>) => promise.then()],
    ['catch', (promise: ApiPromise<number>) => promise.catch(() => {})],
    ['finally', (promise: ApiPromise<number>) => promise.finally(() => {})],
    ['withResponse', (promise: ApiPromise<number>) => promise.withResponse()],
  ])('%s → a plain promise', (_name, use) => {
    expect(use(makePromise(1)).constructor).toBe(Promise);
  });

  test('inspect → the name and state of the promise', async () => {
    const promise = makePromise(1);
    expect(inspect(promise)).toBe('ApiPromise { <pending> }');
    await promise;
    expect(inspect(promise)).toBe('ApiPromise { 1 }');
  });
});

describe('a rejection', () => {
  const failure = new Error('call');
  const fail = () => new ApiPromise<number>(Promise.reject(failure));

  test.each([
    ['the call', (promise: ApiPromise<number>) => promise],
    ['withResponse', (promise: ApiPromise<number>) => promise.withResponse()],
    ['then', (promise: ApiPromise<number>) => promise.then(() => {})],
  ])('%s that nobody handles → one unhandled rejection', async (_name, use) => {
    expect(await collectUnhandled(() => void use(fail()))).toEqual([failure]);
  });

  test.each([
    ['the call', (promise: ApiPromise<number>) => promise.catch(() => {})],
    ['withResponse', (promise: ApiPromise<number>) => promise.withResponse().catch(() => {})],
    ['await', (promise: ApiPromise<number>) => catchRejection(promise)],
  ])('%s that is handled → no unhandled rejection', async (_name, use) => {
    expect(await collectUnhandled(() => use(fail()))).toEqual([]);
  });
});

describe('results', () => {
  test('withResponse → the data with request id, attempts, rate limit and response', async () => {
    const promise = makePromise('data');
    const result = await promise.withResponse();
    expect(result).toMatchObject({ data: 'data', requestId: 'req-1', attempts: 2, rateLimit: { limit: 10 } });
    expect(await result.response.text()).toBe('x');
  });
});

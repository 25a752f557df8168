import { describe, expect, test } from 'vitest';
import type { ApiPromise } from '../../src/index.ts';
import type { Courier } from '../../src/schemas/courier.ts';
import { catchRejection, makeClient } from '../support/make-client.ts';
import { settled } from '../support/settled.ts';

type Call = ApiPromise<Courier[]>;
const list = () => makeClient({ body: { data: [] } }).client.couriers.list();

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

test.each([
  ['then', (promise: Call) => promise.then()],
  ['catch', (promise: Call) => promise.catch(() => {})],
  ['finally', (promise: Call) => promise.finally(() => {})],
  ['withResponse', (promise: Call) => promise.withResponse()],
])('%s of a call → a plain promise', (_name, use) => {
  expect(use(list()).constructor).toBe(Promise);
});

test('the class of the promise → the native one, so its static methods work', async () => {
  const promise = list();
  expect(promise.constructor).toBe(Promise);
  expect(await Promise.all([promise, list()])).toEqual([[], []]);
});

describe('a rejection', () => {
  const failure = new Error('call');
  const fail = () => makeClient().client.couriers.list({ signal: AbortSignal.abort(failure) });

  test.each([
    ['the call', (promise: Call) => promise],
    ['withResponse', (promise: Call) => promise.withResponse()],
    ['then', (promise: Call) => promise.then(() => {})],
  ])('%s that nobody handles → one unhandled rejection', async (_name, use) => {
    expect(await collectUnhandled(() => void use(fail()))).toEqual([failure]);
  });

  test.each([
    ['the call', (promise: Call) => promise.catch(() => {})],
    ['withResponse', (promise: Call) => promise.withResponse().catch(() => {})],
    ['await', (promise: Call) => catchRejection(promise)],
  ])('%s that is handled → no unhandled rejection', async (_name, use) => {
    expect(await collectUnhandled(() => use(fail()))).toEqual([]);
  });
});

// A test runner installs or removes fake timers while a limiter is in use: the clock jumps, and timers that were set before
// never fire.
import { expect, test, vi } from 'vitest';
import { TokenBucketLimiter } from '../../src/limiter/token-bucket.ts';
import { observe, toAcquire } from './make-limiter.ts';

const CALL = toAcquire(1);
/** From a response to the return of its token. */
const RETURN_MS = 1_010;

async function use(limiter: TokenBucketLimiter): Promise<void> {
  const permit = await limiter.acquire(CALL);
  permit.send();
  permit.report({ status: 200 });
}

const ask = (limiter: TokenBucketLimiter) => observe(limiter.acquire(CALL));

test('fake timers installed after a call → the next call is granted when its token is free', async () => {
  const limiter = new TokenBucketLimiter();
  await use(limiter);
  vi.useFakeTimers();
  const call = ask(limiter);
  await vi.advanceTimersByTimeAsync(RETURN_MS - 50);
  expect(call.state).toBe('waiting');
  await vi.advanceTimersByTimeAsync(51);
  expect(vi.getTimerCount()).toBe(0);
  expect(call.state).toBe('granted');
});

test('fake timers removed while a call waits → granted under the fake timers installed later', async () => {
  const limiter = new TokenBucketLimiter();
  vi.useFakeTimers();
  await use(limiter);
  const first = ask(limiter);
  vi.useRealTimers();
  vi.useFakeTimers();
  const second = ask(limiter);
  await vi.advanceTimersByTimeAsync(RETURN_MS + 1);
  expect(first.state).toBe('granted');
  first.permit?.send();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(second.state).toBe('granted');
});

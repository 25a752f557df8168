import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AcquireOptions } from '../../src/limiter/limiter.ts';
import { bucket } from './make-limiter.ts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
  vi.resetModules();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.resetModules();
});

/** A limiter that takes itself to be on a Worker, whose only token is out. */
async function usedUp() {
  const { TokenBucketLimiter } = await import('../../src/limiter/token-bucket.ts');
  const limiter = new TokenBucketLimiter();
  const asked = (overrides: Partial<AcquireOptions> = {}) =>
    limiter.acquire({ bucket, limit: 1, priority: 'interactive', ...overrides });
  const permit = await asked();
  permit.send();
  return { asked, permit };
}

describe('on a Worker', () => {
  test('two calls that have to wait → each sleeps by a timer of its own, which ends with its request', async () => {
    const { asked, permit } = await usedUp();
    permit.report({ status: 200 });
    const [first, second] = [asked(), asked()];
    await vi.advanceTimersByTimeAsync(500);
    expect(vi.getTimerCount()).toBe(2);
    await vi.advanceTimersByTimeAsync(600);
    (await first).cancel();
    await vi.advanceTimersByTimeAsync(30);
    await expect(second).resolves.toHaveProperty('tokensLeft', 0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('no token within maxWaitMs → TimeoutError that names it, in time', async () => {
    const { asked } = await usedUp();
    const startedAt = performance.now();
    const rejection = asked({ maxWaitMs: 140 }).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(1_000);
    const endedAt = asked({ maxWaitMs: 0 }).catch((error: unknown) => error);
    expect(await rejection).toMatchObject({
      name: 'TimeoutError',
      message: 'Expected a free slot for `trackers.get` within 140 ms, got none',
      phase: 'queue',
      timeoutMs: 140,
    });
    expect(await endedAt).toMatchObject({ timeoutMs: 0 });
    expect(performance.now() - startedAt).toBe(1_000);
  });

  test('an abort while it waits → the signal’s own reason, no timer left', async () => {
    const { asked } = await usedUp();
    const controller = new AbortController();
    const rejection = asked({ signal: controller.signal }).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(60);
    controller.abort('enough');
    expect(await rejection).toBe('enough');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a longer pause than maxPauseMs → LongPauseError at once', async () => {
    const { asked, permit } = await usedUp();
    permit.report({ status: 429, retryAfterMs: 60_000 });
    await expect(asked({ maxPauseMs: 1_000 })).rejects.toMatchObject({ name: 'LongPauseError' });
  });

  test('maxWaitMs that is no number → ConfigurationError, not a call that waits for ever', async () => {
    const { asked } = await usedUp();
    // @ts-expect-error: a program without types gives anything.
    await expect(asked({ maxWaitMs: 'soon' })).rejects.toMatchObject({ name: 'ConfigurationError' });
  });
});

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CallDeadline } from '../../src/http/deadline.ts';
import { rejectionOf } from '../support/make-client.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = () => new Promise<never>(() => {});
const headers = () => 'headers' as const;

describe('runAttempt', () => {
  test('the call and the attempt end at the same moment → the error is that of the call', async () => {
    const deadline = new CallDeadline(100);
    const options = { timeoutMs: 100, callerSignal: undefined, phase: headers };
    const failing = rejectionOf(deadline.runAttempt(options, never));
    await vi.advanceTimersByTimeAsync(100);
    expect(await failing).toMatchObject({ message: expect.stringContaining('`totalTimeoutMs`') });
    expect(deadline.remainingMs).toBe(0);
  });
});

describe('remainingMs', () => {
  test('no totalTimeoutMs → no end', () => {
    expect(new CallDeadline(undefined).remainingMs).toBeUndefined();
  });

  test('time passes → less is left, never less than nothing', async () => {
    const deadline = new CallDeadline(100);
    expect(deadline.remainingMs).toBe(100);
    await vi.advanceTimersByTimeAsync(40);
    expect(deadline.remainingMs).toBe(60);
    await vi.advanceTimersByTimeAsync(400);
    expect(deadline.remainingMs).toBe(0);
  });

  test('declared over → nothing is left, whatever the clock says', () => {
    const deadline = new CallDeadline(100);
    deadline.error('backoff');
    expect(deadline.remainingMs).toBe(0);
  });

  test('the wall clock jumps an hour → nothing changes', () => {
    const deadline = new CallDeadline(100);
    vi.setSystemTime(Date.now() + 3_600_000);
    expect(deadline.remainingMs).toBe(100);
  });
});

describe('runAttempt', () => {
  test.each([
    [50, 100, 'timeoutMs', 50],
    [100, 50, 'totalTimeoutMs', 50],
    [100, undefined, 'timeoutMs', 100],
  ] as const)(
    'timeoutMs %d, totalTimeoutMs %s → %s ends it',
    async (timeoutMs, totalTimeoutMs, option, endsAfterMs) => {
      const settled = vi.fn();
      new CallDeadline(totalTimeoutMs)
        .runAttempt({ timeoutMs, callerSignal: undefined, phase: headers }, never)
        .catch(settled);
      await vi.advanceTimersByTimeAsync(endsAfterMs - 1);
      expect(settled).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      expect(settled).toHaveBeenCalledExactlyOnceWith(
        expect.objectContaining({ name: 'TimeoutError', message: expect.stringContaining(`\`${option}\``) }),
      );
    },
  );

  test('a result in time → the result, no timer is left', async () => {
    const options = { timeoutMs: 100, callerSignal: new AbortController().signal, phase: headers };
    expect(await new CallDeadline(undefined).runAttempt(options, async () => 'result')).toBe('result');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a failure in time → the failure, no timer is left', async () => {
    const failure = new Error('x');
    const options = { timeoutMs: 100, callerSignal: undefined, phase: headers };
    const attempt = () => Promise.reject(failure);
    expect(await rejectionOf(new CallDeadline(undefined).runAttempt(options, attempt))).toBe(failure);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('an abort → the reason, the attempt is told', async () => {
    const controller = new AbortController();
    let told: AbortSignal | undefined;
    const options = { timeoutMs: 100, callerSignal: controller.signal, phase: headers };
    const rejection = rejectionOf(
      new CallDeadline(undefined).runAttempt(options, (signal) => {
        told = signal;
        return never();
      }),
    );
    controller.abort('stop');
    expect(await rejection).toBe('stop');
    expect(told?.reason).toBe('stop');
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(['headers', 'body', 'queue'] as const)(
    'out of time in phase %s → named in the error',
    async (phase) => {
      const options = { timeoutMs: 5, callerSignal: undefined, phase: () => phase };
      const rejection = rejectionOf(new CallDeadline(undefined).runAttempt(options, never));
      await vi.advanceTimersByTimeAsync(5);
      expect(await rejection).toMatchObject({ name: 'TimeoutError', phase, timeoutMs: 5 });
    },
  );
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LimitWindow, RateLimits } from '../../../src/testing/service/rate-limits.ts';

const START_MS = 1_000_000;

describe('RateLimits', () => {
  it('the first request → allowed, with both header sets and no retry-after', () => {
    const { allowed, headers } = new RateLimits({}, 'fixed').take('trackers.list', START_MS + 300);
    expect(allowed).toBe(true);
    expect(headers).toEqual({
      'ratelimit-limit': '10',
      'ratelimit-remaining': '9',
      'ratelimit-reset': '1',
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '9',
      'x-ratelimit-reset': '1001',
    });
  });

  it('a full window → refused, with retry-after equal to ratelimit-reset', () => {
    const limits = new RateLimits({}, 'fixed');
    limits.take('couriers.list', START_MS);
    const { allowed, headers } = limits.take('couriers.list', START_MS + 900);
    expect(allowed).toBe(false);
    expect(headers).toMatchObject({ 'retry-after': '1', 'ratelimit-reset': '1', 'ratelimit-remaining': '0' });
  });

  it('fixed windows → a new second starts with the full allowance', () => {
    const limits = new RateLimits({ 'couriers.list': 1 }, 'fixed');
    limits.take('couriers.list', START_MS + 999);
    expect(limits.take('couriers.list', START_MS + 1000).allowed).toBe(true);
  });

  it('a sliding window → counts over the last second', () => {
    const limits = new RateLimits({ 'couriers.list': 1 }, 'sliding');
    limits.take('couriers.list', START_MS + 999);
    expect(limits.take('couriers.list', START_MS + 1998).allowed).toBe(false);
    expect(limits.take('couriers.list', START_MS + 1999).allowed).toBe(true);
  });

  it('a sliding window → resets a second after the oldest request in it', () => {
    const limits = new RateLimits({ 'couriers.list': 2 }, 'sliding');
    limits.take('couriers.list', START_MS);
    limits.take('couriers.list', START_MS + 900);
    const { headers } = limits.take('couriers.list', START_MS + 950);
    expect(headers).toMatchObject({ 'retry-after': '1', 'x-ratelimit-reset': '1001' });
  });

  it('a reset within a second → X-RateLimit-Reset is rounded up, never before it', () => {
    const { headers } = new RateLimits({}, 'sliding').take('couriers.list', START_MS + 1);
    expect(headers['x-ratelimit-reset']).toBe('1002');
  });

  it('an override → its own limit; 0 refuses all', () => {
    const limits = new RateLimits({ 'couriers.list': 0, 'trackers.list': 2 }, 'fixed');
    expect(limits.take('couriers.list', START_MS).allowed).toBe(false);
    expect(limits.take('trackers.list', START_MS).headers['ratelimit-limit']).toBe('2');
  });

  it('one endpoint full → the others are not', () => {
    const limits = new RateLimits({}, 'fixed');
    limits.take('couriers.list', START_MS);
    expect(limits.take('trackers.resendWebhookEvents', START_MS).allowed).toBe(true);
  });

  it('a clock that steps back → nobody is locked out', () => {
    const limits = new RateLimits({}, 'sliding');
    limits.take('couriers.list', START_MS + 3_600_000);
    expect(limits.take('couriers.list', START_MS).allowed).toBe(true);
  });

  it('any arrivals → no window ever holds more than the limit', () => {
    const arrivals = fc.array(fc.nat(700), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(arrivals, fc.constantFrom<LimitWindow>('fixed', 'sliding'), (gaps, window) => {
        const limits = new RateLimits({ 'trackers.createBulk': 3 }, window);
        let nowMs = START_MS;
        const accepted: number[] = [];
        for (const gap of gaps) {
          nowMs += gap;
          if (limits.take('trackers.createBulk', nowMs).allowed) accepted.push(nowMs);
        }
        for (const at of accepted) {
          const start = window === 'fixed' ? Math.floor(at / 1000) * 1000 : at;
          expect(
            accepted.filter((other) => other >= start && other < start + 1000).length,
          ).toBeLessThanOrEqual(3);
        }
      }),
    );
  });
});

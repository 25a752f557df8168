import { afterEach, describe, expect, test, vi } from 'vitest';
import { readRateLimit, readRetryAfterMs } from '../../src/http/rate-limit-headers.ts';

const DATE = 'Wed, 21 Oct 2026 07:28:00 GMT';
const DATE_SECONDS = Date.parse(DATE) / 1_000;
const ONE_WINDOW_MS = 1_000;
/** How long a 429 with these headers asks to wait; one window where they say nothing that can be used. */
const delay = (headers: Record<string, string>) =>
  readRetryAfterMs({ status: 429, headers: new Headers(headers) });
const httpDate = (offsetSeconds: number) => new Date((DATE_SECONDS + offsetSeconds) * 1_000).toUTCString();

afterEach(() => {
  vi.useRealTimers();
});

describe('Retry-After in seconds', () => {
  test.each([
    ['5', 5_000],
    ['0', 0],
    ['1.5', 1_500],
    ['0.0001', 0.1],
    [' 7 ', 7_000],
    ['999999999', 999_999_999_000],
  ])('%j → %d ms', (value, ms) => {
    expect(delay({ 'retry-after': value })).toBe(ms);
  });

  test('more digits than a number holds → longer than any wait', () => {
    expect(delay({ 'retry-after': '9'.repeat(400) })).toBe(Number.POSITIVE_INFINITY);
  });

  test.each(['-1', '', ' ', '5s', '1e3', '0x10', 'NaN', 'Infinity', '5,', '5, soon', '120, 60', 'undefined'])(
    '%j and nothing else → one window',
    (value) => {
      expect(delay({ 'retry-after': value, date: DATE })).toBe(ONE_WINDOW_MS);
    },
  );

  test('digits that could be a year → seconds', () => {
    expect(delay({ 'retry-after': '2026', date: DATE })).toBe(2_026_000);
  });

  test.each(['-1', '', 'soon'])('%j and a RateLimit-Reset → the latter', (value) => {
    expect(delay({ 'retry-after': value, 'ratelimit-reset': '2' })).toBe(2_000);
  });
});

describe('Retry-After as a date', () => {
  test('30 s after the Date header → 30 s', () => {
    expect(delay({ 'retry-after': httpDate(30), date: DATE })).toBe(30_000);
  });

  test('without a Date header → one window: our own clock is not asked', () => {
    vi.useFakeTimers({ now: Date.parse(DATE) });
    expect(delay({ 'retry-after': httpDate(30) })).toBe(ONE_WINDOW_MS);
  });

  test('without a Date header, with a RateLimit-Reset → the latter', () => {
    expect(delay({ 'retry-after': httpDate(30), 'ratelimit-reset': '2' })).toBe(2_000);
  });

  test('before the Date header → 0', () => {
    expect(delay({ 'retry-after': httpDate(-30), date: DATE })).toBe(0);
  });

  test('equal to the Date header → 0', () => {
    expect(delay({ 'retry-after': DATE, date: DATE })).toBe(0);
  });

  test.each(['Wed, 99 Foo 2026 07:28:00 GMT', 'Someday', 'GMT', '2026-10-21T07:28:30Z'])(
    'malformed (%s) → one window',
    (value) => {
      expect(delay({ 'retry-after': value, date: DATE })).toBe(ONE_WINDOW_MS);
    },
  );

  test('beside a malformed Date header → one window', () => {
    expect(delay({ 'retry-after': httpDate(30), date: 'yesterday' })).toBe(ONE_WINDOW_MS);
  });
});

describe('a date with an offset, which no HTTP-date has', () => {
  test('30 s after the Date header → 30 s', () => {
    expect(delay({ 'retry-after': 'Wed, 21 Oct 2026 09:28:30 +0200', date: DATE })).toBe(30_000);
  });
});

describe('our clock is wrong', () => {
  test.each([90, -90])('by %d s → the same delay from a date', (skewSeconds) => {
    vi.useFakeTimers({ now: (DATE_SECONDS + skewSeconds) * 1_000 });
    expect(delay({ 'retry-after': httpDate(30), date: DATE })).toBe(30_000);
  });

  test.each([90, -90])('by %d s → the same delay from X-RateLimit-Reset', (skewSeconds) => {
    vi.useFakeTimers({ now: (DATE_SECONDS + skewSeconds) * 1_000 });
    expect(delay({ 'x-ratelimit-reset': String(DATE_SECONDS + 2), date: DATE })).toBe(2_000);
  });
});

describe('RateLimit-Reset', () => {
  test.each([
    ['1', 1_000],
    ['0', 0],
    ['0.25', 250],
  ])('%s → %d ms', (value, ms) => {
    expect(delay({ 'ratelimit-reset': value })).toBe(ms);
  });

  test('together with Retry-After → Retry-After wins', () => {
    expect(delay({ 'ratelimit-reset': '1', 'retry-after': '5' })).toBe(5_000);
  });

  test('together with X-RateLimit-Reset → RateLimit-Reset wins', () => {
    const headers = { 'ratelimit-reset': '1', 'x-ratelimit-reset': String(DATE_SECONDS + 9), date: DATE };
    expect(delay(headers)).toBe(1_000);
  });

  test.each(['-1', 'soon', ''])('%j → the other set is asked', (value) => {
    const headers = { 'ratelimit-reset': value, 'x-ratelimit-reset': String(DATE_SECONDS + 9), date: DATE };
    expect(delay(headers)).toBe(9_000);
  });
});

describe('X-RateLimit-Reset', () => {
  test('a timestamp 3 s after the Date header → 3 s', () => {
    expect(delay({ 'x-ratelimit-reset': String(DATE_SECONDS + 3), date: DATE })).toBe(3_000);
  });

  test('a timestamp before the Date header → 0', () => {
    expect(delay({ 'x-ratelimit-reset': String(DATE_SECONDS - 3), date: DATE })).toBe(0);
  });

  test('a timestamp past 2^31 seconds → read as well', () => {
    const date = 'Wed, 01 Jan 2042 00:00:00 GMT';
    const reset = Date.parse(date) / 1_000 + 4;
    expect(reset).toBeGreaterThan(2 ** 31);
    expect(delay({ 'x-ratelimit-reset': String(reset), date })).toBe(4_000);
  });

  test('a timestamp without a Date header → one window: our own clock is not asked', () => {
    vi.useFakeTimers({ now: Date.parse(DATE) });
    expect(delay({ 'x-ratelimit-reset': String(DATE_SECONDS + 3) })).toBe(ONE_WINDOW_MS);
  });

  test('a number too small for a timestamp → a delay in seconds', () => {
    expect(delay({ 'x-ratelimit-reset': '2' })).toBe(2_000);
  });

  test.each([
    ['99999999', 'a delay', 99_999_999_000],
    ['100000000', 'a timestamp in seconds, long past', 0],
    ['99999999999', 'a timestamp in seconds', (99_999_999_999 - DATE_SECONDS) * 1_000],
  ])('%s → %s', (value, _what, ms) => {
    expect(delay({ 'x-ratelimit-reset': value, date: DATE })).toBe(ms);
  });
});

test('no header at all → one window', () => {
  expect(delay({})).toBe(ONE_WINDOW_MS);
});

describe('a response other than 429', () => {
  const requested = (headers: Record<string, string>) =>
    readRetryAfterMs({ status: 503, headers: new Headers(headers) });

  test('Retry-After → its delay', () => {
    expect(requested({ 'retry-after': '3' })).toBe(3_000);
  });

  test.each([{}, { 'retry-after': 'soon' }, { 'ratelimit-reset': '1', 'x-ratelimit-reset': '1' }])(
    '%j → nothing is asked for: every response has reset headers',
    (headers) => {
      expect(requested(headers)).toBeUndefined();
    },
  );
});

describe('readRateLimit', () => {
  const parse = (headers: Record<string, string>) => readRateLimit(new Headers(headers));

  test('the standard set → all of it', () => {
    expect(parse({ 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' })).toEqual({
      limit: 10,
      remaining: 0,
      resetMs: 1_000,
    });
  });

  test('the other set → all of it', () => {
    const headers = {
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '2',
      'x-ratelimit-reset': String(DATE_SECONDS + 1),
      date: DATE,
    };
    expect(parse(headers)).toEqual({ limit: 3, remaining: 2, resetMs: 1_000 });
  });

  test('both sets → the standard one wins', () => {
    expect(parse({ 'ratelimit-limit': '10', 'x-ratelimit-limit': '3' }).limit).toBe(10);
  });

  test('no headers → nothing known', () => {
    expect(parse({})).toEqual({ limit: undefined, remaining: undefined, resetMs: undefined });
  });

  test.each(['0', 'NaN', '-5', '2.5', '', '10;w=1', '9'.repeat(30)])('a limit of %j → unknown', (value) => {
    expect(parse({ 'ratelimit-limit': value }).limit).toBeUndefined();
  });

  test.each(['NaN', '-5', '2.5', '', '9;w=1', 'about 9'])('%j remaining → unknown', (value) => {
    expect(parse({ 'ratelimit-remaining': value }).remaining).toBeUndefined();
  });

  test('Retry-After → no part of it', () => {
    expect(parse({ 'retry-after': '9' }).resetMs).toBeUndefined();
  });
});

import { describe, expect, test, vi } from 'vitest';
import { readRateLimit, readRetryAfterMs } from '../../src/http/response-head.ts';

const DATE = 'Wed, 21 Oct 2026 07:28:00 GMT';
const DATE_SECONDS = Date.parse(DATE) / 1_000;
const ONE_WINDOW_MS = 1_000;
const httpDate = (offsetSeconds: number) => new Date((DATE_SECONDS + offsetSeconds) * 1_000).toUTCString();
const timestamp = (offsetSeconds: number) => String(DATE_SECONDS + offsetSeconds);

/** Returns the delay that a response with these headers requests. */
function readDelay(headers: Record<string, string>, status = 429): number | undefined {
  return readRetryAfterMs(status, new Headers(headers));
}

describe('the delay of a 429', () => {
  test.each<[retryAfter: string, ms: number]>([
    ['5', 5_000],
    ['0', 0],
    ['0.0001', 0.1],
    [' 7 ', 7_000],
    ['999999999', 999_999_999_000],
    ['9'.repeat(400), Number.POSITIVE_INFINITY],
    [httpDate(30), 30_000],
    ['Wed, 21 Oct 2026 09:28:30 +0200', 30_000],
    [httpDate(-30), 0],
    [DATE, 0],
    ['30, 30', 30_000],
    ['120,60', 120_000],
    ['60, 120', 120_000],
    ['1, soon', 1_000],
    [`${httpDate(30)}, ${httpDate(30)}`, 30_000],
    [`${httpDate(10)},${httpDate(30)}`, 30_000],
    [`5, ${httpDate(30)}`, 30_000],
    [`${httpDate(30)}, 50`, 50_000],
    ['Wednesday, 21-Oct-26 07:28:30 GMT', 30_000],
    ['Wed Oct 21 07:28:30 2026 GMT', 30_000],
  ])('Retry-After %j → %d ms', (retryAfter, ms) => {
    expect(readDelay({ 'retry-after': retryAfter, date: DATE })).toBe(ms);
  });

  test.each(['-1', '', '5s', '1e3', 'Infinity', 'Wed, 99 Foo 2026 07:28:00 GMT', '2026-10-21T07:28:30Z'])(
    'Retry-After %j → the delay of RateLimit-Reset, or one window without it',
    (value) => {
      expect(readDelay({ 'retry-after': value, date: DATE })).toBe(ONE_WINDOW_MS);
      expect(readDelay({ 'retry-after': value, date: DATE, 'ratelimit-reset': '2' })).toBe(2_000);
    },
  );

  test('a Date that comes twice → the longest wait', () => {
    const date = `${DATE}, ${httpDate(10)}`;
    expect(readDelay({ 'retry-after': httpDate(30), date })).toBe(30_000);
    expect(readDelay({ 'x-ratelimit-reset': `${timestamp(9)}, ${timestamp(5)}`, date })).toBe(9_000);
  });

  test.each([
    ['1', 1_000],
    ['0', 0],
    ['0.25', 250],
    ['2, 2', 2_000],
    ['2,7', 7_000],
  ])('RateLimit-Reset %j → %d ms', (value, ms) => {
    expect(readDelay({ 'ratelimit-reset': value, 'x-ratelimit-reset': timestamp(9), date: DATE })).toBe(ms);
  });

  test.each(['-1', 'soon', ''])('RateLimit-Reset %j → the other set counts', (value) => {
    expect(readDelay({ 'ratelimit-reset': value, 'x-ratelimit-reset': timestamp(9), date: DATE })).toBe(
      9_000,
    );
  });

  test('RateLimit-Reset and Retry-After → Retry-After is used', () => {
    expect(readDelay({ 'ratelimit-reset': '1', 'retry-after': '5' })).toBe(5_000);
  });

  test.each([
    ['a timestamp after the Date header', timestamp(3), DATE, 3_000],
    ['a timestamp before the Date header', timestamp(-3), DATE, 0],
    ['a timestamp past 2^31', String(Date.UTC(2042) / 1_000 + 4), 'Wed, 01 Jan 2042 00:00:00 GMT', 4_000],
    ['a small number, which is a delay', '2', DATE, 2_000],
    ['the largest number that is a delay', '99999999', DATE, 99_999_999_000],
    ['the smallest number that is a timestamp', '100000000', DATE, 0],
  ])('X-RateLimit-Reset with %s → its delay', (_what, reset, date, ms) => {
    expect(readDelay({ 'x-ratelimit-reset': reset, date })).toBe(ms);
  });

  test.each<[what: string, headers: Record<string, string>]>([
    ['no header', {}],
    ['a Retry-After date without a Date header', { 'retry-after': httpDate(30) }],
    ['a Retry-After date with a malformed Date header', { 'retry-after': httpDate(30), date: 'yesterday' }],
    ['a timestamp without a Date header', { 'x-ratelimit-reset': timestamp(3) }],
  ])('%s → one window, because the local clock may be wrong', (_what, headers) => {
    vi.useFakeTimers({ now: Date.parse(DATE) });
    expect(readDelay(headers)).toBe(ONE_WINDOW_MS);
  });
});

test.each<[headers: Record<string, string>, ms: number | undefined]>([
  [{ 'retry-after': '3' }, 3_000],
  [{}, undefined],
  [{ 'retry-after': 'soon' }, undefined],
  [{ 'ratelimit-reset': '1', 'x-ratelimit-reset': '1' }, undefined],
])('503 with %j → %s: reset headers do not count, because every response has them', (headers, ms) => {
  expect(readDelay(headers, 503)).toBe(ms);
});

describe('the announced limit', () => {
  const read = (headers: Record<string, string>) => readRateLimit(new Headers(headers));
  const other = {
    'x-ratelimit-limit': '3',
    'x-ratelimit-remaining': '2',
    'x-ratelimit-reset': timestamp(2),
    date: DATE,
  };

  test.each<[what: string, headers: Record<string, string>, expected: object]>([
    [
      'both sets of headers, of which the standard set wins',
      { ...other, 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '1' },
      { limit: 10, remaining: 0, resetMs: 1_000 },
    ],
    ['the `X-` headers alone', other, { limit: 3, remaining: 2, resetMs: 2_000 }],
    [
      'Retry-After alone',
      { 'retry-after': '9' },
      { limit: undefined, remaining: undefined, resetMs: undefined },
    ],
  ])('%s → limit, remaining requests and reset', (_what, headers, expected) => {
    expect(read(headers)).toEqual(expected);
  });

  test.each(['NaN', '-5', '2.5', '', '10;w=1', 'about 9'])('%j → unknown', (value) => {
    const { limit, remaining } = read({ 'ratelimit-limit': value, 'ratelimit-remaining': value });
    expect([limit, remaining]).toEqual([undefined, undefined]);
  });

  test.each(['0', '9'.repeat(30)])('a limit of %j → unknown', (value) => {
    expect(read({ 'ratelimit-limit': value }).limit).toBeUndefined();
  });
});

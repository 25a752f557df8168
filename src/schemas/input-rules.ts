import { z } from 'zod';
import { expected, formatPath, kindOf } from '../common/validation.ts';

const DAY_MS = 86_400_000;
const MAX_SHIPPING_AGE_DAYS = 180;
/** The zone furthest behind UTC is 12 hours behind: only after that is a local date surely over everywhere. */
const WIDEST_ZONE_MS = 12 * 3_600_000;
const MAX_COURIER_CODES = 3;

/**
 * One courier code, or up to three of them.
 *
 * @specification service.md 2.1, 8
 */
export type CourierCodes = string | readonly string[];

/** A string of `min` to `max` characters. */
export function text(min: number, max: number) {
  const rule = min === 0 ? `at most ${max} characters` : `${min} to ${max} characters`;
  return z
    .string(expected('to be a string'))
    .min(min, { ...expected(`to have ${rule}`), abort: true })
    .max(max, expected(`to have ${rule}`));
}

/** Length and character set of a tracking number (service.md 2.1). */
export const trackingNumberText = text(5, 50).regex(
  /^[A-Za-z0-9\-_/.]*$/,
  expected('to hold only A-Z, a-z, 0-9, "-", "_", "/" and "."'),
);

/**
 * True for one plain ascending run of digits such as `12345` or `1234567890`, which the service rejects as a dummy. A run
 * that goes on after that 0 may be a real number: the service knows.
 */
export function isAscendingDigitRun(value: string): boolean {
  return value !== '' && '01234567890'.includes(value);
}

/** A tracking number that may be submitted: right length and characters, and not a dummy digit run. */
export const trackingNumber = trackingNumberText.refine(
  (value) => !isAscendingDigitRun(value),
  expected('to be a real tracking number', () => 'a plain ascending run of digits'),
);

/** ISO 3166-1 alpha-2 or alpha-3 shape; whether the country exists is the service's to say. */
export const countryCode = z
  .string(expected('to be a string'))
  .regex(/^[A-Za-z]{2,3}$/, expected('to be an ISO 3166-1 alpha-2 or alpha-3 country code'));

function brokenCourierRule(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? 'to be a courier code' : undefined;
  if (!Array.isArray(value)) return 'to be a courier code or an array of them';
  if (value.length > MAX_COURIER_CODES) return `to have at most ${MAX_COURIER_CODES} codes`;
  if (!value.every((code) => typeof code === 'string' && code.trim() !== ''))
    return 'to hold courier codes only';
  return undefined;
}

function gotCouriers(value: unknown): string {
  return Array.isArray(value) && value.length > MAX_COURIER_CODES ? String(value.length) : kindOf(value);
}

/** One courier code or an array of at most three (service.md 2.1). */
export const courierCodes = z.custom<CourierCodes>((value) => brokenCourierRule(value) === undefined, {
  error: (issue) =>
    `Expected \`${formatPath(issue.path ?? [])}\` ${brokenCourierRule(issue.input)}, got ${gotCouriers(issue.input)}`,
});

/** Boolean (public contract) or courier codes (service.md 2.1); sent as given. */
export const courierRestriction = z.custom<boolean | CourierCodes>(
  (value) => typeof value === 'boolean' || brokenCourierRule(value) === undefined,
  {
    error: (issue) =>
      `Expected \`${formatPath(issue.path ?? [])}\` ${brokenCourierRule(issue.input) ?? 'to be a boolean'}, got ${gotCouriers(issue.input)}`,
  },
);

/** An e-mail address of at most 254 characters, checked by shape only. */
export const email = text(0, 254).regex(/^[^\s@]+@[^\s@]+$/, expected('to be an e-mail address'));

const ISO_DATE =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2})(?::(\d{2})(?::(\d{2})(?:[.,]\d+)?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/;
/** A second lasts until just before the next one, whatever its fraction says. */
const REST_OF_SECOND_MS = 999;

/** The last instant an ISO 8601 date or date-time can mean in any time zone; `undefined` when it is not one. */
export function latestInstant(value: string): number | undefined {
  const match = ISO_DATE.exec(value);
  if (match === null) return undefined;
  const [, year, month, day, hours = '23', minutes = '59', seconds = '59', zone] = match;
  const start = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const parsed = new Date(start);
  const isRealDay = parsed.getUTCMonth() === Number(month) - 1 && parsed.getUTCDate() === Number(day);
  if (!isRealDay || Number(hours) > 24 || Number(minutes) > 59 || Number(seconds) > 60) return undefined;
  const local =
    start + ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + REST_OF_SECOND_MS;
  if (zone === 'Z') return local;
  if (zone === undefined) return local + WIDEST_ZONE_MS;
  const sign = zone.startsWith('-') ? -1 : 1;
  const digits = zone.slice(1).replace(':', '').padEnd(4, '0');
  return local - sign * (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * 60_000;
}

function isSurelyOutdated(value: string): boolean {
  const latest = latestInstant(value);
  return latest !== undefined && Date.now() - latest > MAX_SHIPPING_AGE_DAYS * DAY_MS;
}

/** An ISO 8601 date that is not surely older than 180 days (service.md 2.1, code `shipping_date_outdated`). */
export const shippingDate = z
  .string(expected('to be a string'))
  .refine((value) => latestInstant(value) !== undefined, {
    ...expected('to be an ISO 8601 date'),
    abort: true,
  })
  .refine((value) => !isSurelyOutdated(value), {
    ...expected(`to be at most ${MAX_SHIPPING_AGE_DAYS} days old`, () => 'an older date'),
    params: { code: 'shipping_date_outdated' },
  });

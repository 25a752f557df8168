import type { z } from 'zod';
import { errorMap, formatPath } from '../../common/validation.ts';
import { endpoints } from '../../endpoints.ts';
import type { TrackerInput } from '../../schemas/tracker.ts';
import { latestInstant } from '../../schemas/tracker.ts';
import { toAlpha2 } from './countries.ts';
import { ServiceError, type ServiceErrorItem } from './replies.ts';

const DAY_MS = 86_400_000;
const MAX_SHIPPING_AGE_DAYS = 180;

/** Parses a request body; every endpoint that takes one takes JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ServiceError(400, { code: 'parsing_error', message: 'The body is not valid JSON.' });
  }
}

function isOutdatedIssue(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'custom' && issue.params?.['code'] === 'shipping_date_outdated';
}

function toErrorItem(issue: z.core.$ZodIssue): ServiceErrorItem {
  const isMissing = issue.input === undefined && issue.code === 'invalid_type';
  if (!isMissing) return { code: 'validation_error', message: issue.message };
  return { code: 'missing_mandatory_field', message: `\`${formatPath(issue.path)}\` is missing.` };
}

function safeParse<Schema extends z.ZodType>(schema: Schema, value: unknown) {
  return schema.safeParse(value, { error: errorMap('body'), reportInput: true });
}

/** The calendar day of a date as the service compares it: UTC where the date names a zone, else as written. */
export function dayOf(date: string): string {
  const hasZone = /T.*(?:Z|[+-]\d{2}(?::?\d{2})?)$/.test(date);
  const instant = hasZone ? latestInstant(date) : undefined;
  return instant === undefined ? date.slice(0, 10) : new Date(instant).toISOString().slice(0, 10);
}

function isOutdated(date: string, nowMs: number): boolean {
  const ageDays = (Math.floor(nowMs / DAY_MS) * DAY_MS - Date.parse(dayOf(date))) / DAY_MS;
  return ageDays > MAX_SHIPPING_AGE_DAYS;
}

/** The fields whose rules depend on the clock or on the list of countries. */
interface DatedPlace {
  readonly shippingDate?: string | undefined;
  readonly originCountryCode?: string | undefined;
  readonly destinationCountryCode?: string | undefined;
}

function brokenPlaceRules(input: DatedPlace, nowMs: number): ServiceErrorItem[] {
  const errors: ServiceErrorItem[] = [];
  for (const field of ['originCountryCode', 'destinationCountryCode'] as const) {
    const code = input[field];
    if (code !== undefined && toAlpha2(code) === undefined)
      errors.push({ code: 'validation_error', message: `\`${field}\` is not an ISO 3166-1 country.` });
  }
  if (input.shippingDate !== undefined && isOutdated(input.shippingDate, nowMs))
    errors.push({ code: 'shipping_date_outdated', message: '`shippingDate` is older than 180 days.' });
  return errors;
}

/**
 * Checks a value against the rules of an endpoint that need no clock.
 *
 * @throws ServiceError `missing_mandatory_field` or `validation_error` (400), one entry per broken rule
 */
export function validated<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = safeParse(schema, value);
  if (!parsed.success) throw new ServiceError(400, parsed.error.issues.map(toErrorItem));
  return parsed.data;
}

function validatedPlace<Input extends DatedPlace>(
  schema: z.ZodType<Input>,
  value: unknown,
  nowMs: number,
): Input {
  const parsed = safeParse(schema, value);
  // The schemas judge a date's age by the machine's clock; the fake judges it by its own.
  const issues = parsed.success ? [] : parsed.error.issues.filter((issue) => !isOutdatedIssue(issue));
  if (issues.length > 0) throw new ServiceError(400, issues.map(toErrorItem));
  // Proved above: the value keeps every rule but perhaps the age, and these schemas transform nothing.
  const input = value as Input;
  const errors = brokenPlaceRules(input, nowMs);
  if (errors.length > 0) throw new ServiceError(400, errors);
  return input;
}

/** Checks a tracker creation request (service.md 2.1). */
export function validatedTrackerInput(value: unknown, nowMs: number): TrackerInput {
  return validatedPlace<TrackerInput>(endpoints['trackers.create'].request.body, value, nowMs);
}

/** Checks the body of `PATCH /trackers/{trackerId}` (public contract). */
export function validatedUpdate(value: unknown, nowMs: number) {
  return validatedPlace(endpoints['trackers.update'].request.body, value, nowMs);
}

/** Checks the body of a per-call search (public contract). */
export function validatedSearch(value: unknown, nowMs: number) {
  return validatedPlace(endpoints['tracking.search'].request.body, value, nowMs);
}

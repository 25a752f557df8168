import * as z from 'zod';
import { describeBrokenRule, quoteValue } from '../common/validation.ts';
import { type FieldsOf, namedRecord, nullish, openEnums } from './record.ts';

const KNOWN_REQUIRED_FIELDS = ['destinationPostCode', 'destinationCountryCode', 'courierAccount'] as const;

/** The schema of `Courier`. */
export const courierSchema = namedRecord<Courier>()({
  courierCode: z.string(),
  courierName: nullish(z.string()),
  website: nullish(z.string()),
  isPost: nullish(z.boolean()),
  countryCode: nullish(z.string()),
  /** Fields of a creation request that this courier needs (docs/service.md 3.15). */
  requiredFields: nullish(openEnums(KNOWN_REQUIRED_FIELDS)),
  /** True if the courier code should no longer be used. */
  isDeprecated: nullish(z.boolean()),
});
/** A courier that the service supports (docs/service.md 2.15). */
export interface Courier extends FieldsOf<typeof courierSchema> {}

const MAX_COURIER_CODES = 3;

/** One courier code, or up to three of them (docs/service.md 3.2). */
export type CourierCodes = string | readonly string[];

const ITEM_RULE = 'to be a non-empty string';

function isCourierCode(code: unknown): boolean {
  return typeof code === 'string' && code.trim() !== '';
}

function findBrokenCourierRule(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? 'to be a courier code' : undefined;
  if (!Array.isArray(value)) return 'to be a courier code or an array of courier codes';
  if (value.length > MAX_COURIER_CODES) return `to have at most ${MAX_COURIER_CODES} codes`;
  return value.every(isCourierCode) ? undefined : ITEM_RULE;
}

const courierError = {
  error: ({ path = [], input }: { path?: PropertyKey[] | undefined; input?: unknown }) => {
    const rule = findBrokenCourierRule(input);
    if (rule !== ITEM_RULE || !Array.isArray(input))
      return describeBrokenRule({ path, input }, rule ?? '', quoteValue);
    const index = input.findIndex((code) => !isCourierCode(code));
    return describeBrokenRule({ path: [...path, index], input: input[index] }, rule, quoteValue);
  },
};

/** One courier code or an array of at most three (docs/service.md 3.2). */
export const courierCodes = z.custom<CourierCodes>(
  (value) => findBrokenCourierRule(value) === undefined,
  courierError,
);

/** A boolean or courier codes, sent as given (docs/service.md 3.8). */
export const courierRestriction = z.custom<boolean | CourierCodes>(
  (value) => typeof value === 'boolean' || findBrokenCourierRule(value) === undefined,
  courierError,
);

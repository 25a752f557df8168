import * as z from 'zod';
import { type FieldsOf, namedRecord, nullish, openEnums, withFacts } from './record.ts';

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

function checkCourierCodes(value: unknown, context: z.core.$RefinementCtx): void {
  const refuse = (rule: string, input: unknown = value, path: PropertyKey[] = []) =>
    context.addIssue({ code: 'custom', path, input, params: { rule, isQuotable: true } });
  const isCode = (code: unknown) => typeof code === 'string' && code.trim() !== '';
  if (typeof value === 'string') {
    if (!isCode(value)) refuse('to be a courier code such as us-post');
  } else if (!Array.isArray(value)) refuse('to be a courier code or an array of courier codes');
  else if (value.length > MAX_COURIER_CODES)
    refuse(`to have at most ${MAX_COURIER_CODES} codes`, value.length);
  else {
    const index = value.findIndex((code) => !isCode(code));
    if (index >= 0) refuse('to be a non-empty string', value[index], [index]);
  }
}

/** One courier code or an array of at most three (docs/service.md 3.2). */
export const courierCodes = withFacts(z.custom<CourierCodes>().superRefine(checkCourierCodes), {
  maxItems: MAX_COURIER_CODES,
});

/** A boolean or courier codes, sent as given (docs/service.md 3.8). */
export const courierRestriction = z.custom<boolean | CourierCodes>().superRefine((value, context) => {
  if (typeof value !== 'boolean') checkCourierCodes(value, context);
});

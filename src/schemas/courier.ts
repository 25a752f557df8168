import { z } from 'zod';
import { observed, openEnum, record } from './record.ts';

/** The hints a courier may ask for, as known today. */
export const COURIER_REQUIRED_FIELDS = [
  'destinationPostCode',
  'destinationCountryCode',
  'courierAccount',
] as const;

/** A courier the service can ask. */
export const courierSchema = record({
  courierCode: z.string(),
  courierName: observed(z.string()),
  website: observed(z.string()),
  isPost: observed(z.boolean()),
  countryCode: observed(z.string()),
  /** Fields a tracker needs for this courier. */
  requiredFields: observed(z.array(openEnum(COURIER_REQUIRED_FIELDS))),
  isDeprecated: observed(z.boolean()),
});
/** A courier the service can ask. */
export type Courier = z.output<typeof courierSchema>;

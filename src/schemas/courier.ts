import { z } from 'zod';
import { observed, openEnum, record } from './record.ts';

/**
 * The hints a courier may ask for, as known today.
 *
 * @specification public contract
 */
export const COURIER_REQUIRED_FIELDS = [
  'destinationPostCode',
  'destinationCountryCode',
  'courierAccount',
] as const;

/**
 * The schema of `Courier`.
 *
 * @specification service.md 4; public contract
 */
export const courierSchema = record({
  /** What requests name it by. */
  courierCode: z.string(),
  /** What people call it. */
  courierName: observed(z.string()),
  /** Its website. */
  website: observed(z.string()),
  /** True for a postal service. */
  isPost: observed(z.boolean()),
  /** Its country. */
  countryCode: observed(z.string()),
  /** Fields a tracker needs for this courier. */
  requiredFields: observed(z.array(openEnum(COURIER_REQUIRED_FIELDS))),
  /** True when it should no longer be used. */
  isDeprecated: observed(z.boolean()),
});
/**
 * A courier the service can ask.
 *
 * @specification service.md 4; public contract
 */
export type Courier = z.output<typeof courierSchema>;

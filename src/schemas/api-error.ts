import { z } from 'zod';
import { observed, openEnum, record } from './record.ts';

/** Every error code that is known today (service.md 7 and the public contract). */
export const KNOWN_ERROR_CODES = [
  'validation_error',
  'missing_mandatory_field',
  'parsing_error',
  'shipping_date_outdated',
  'tracker_conflict',
  'request_conflict',
  'tracker_not_found',
  'parcel_not_found',
  'tracker_not_updatable',
  'no_active_subscription',
  'quota_limit_reached',
  'bulk_create_limit_exceeded',
  'processing_error',
  'webhook_url_missing',
  'auth_missing_header',
  'auth_invalid_header',
  'auth_invalid_api_key',
] as const;
/** An error code that is known today. */
export type KnownErrorCode = (typeof KNOWN_ERROR_CODES)[number];

/** True for a code that is known today. */
export function isKnownErrorCode(code: string): code is KnownErrorCode {
  return KNOWN_ERROR_CODES.some((known) => known === code);
}

export const errorCodeSchema = openEnum(KNOWN_ERROR_CODES);
/** An error code; one that the service adds later is a plain string. */
export type ErrorCode = z.output<typeof errorCodeSchema>;

/** One error as the service reports it; branch on `code`, never on `message` (service.md 7). */
export const apiErrorItemSchema = record({ code: errorCodeSchema, message: observed(z.string()) });
/** One error as the service reports it. */
export type ApiErrorItem = z.output<typeof apiErrorItemSchema>;

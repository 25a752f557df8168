import * as z from 'zod';
import { type FieldsOf, namedRecord, nullish, openEnum } from './record.ts';

/** The error codes known today (docs/service.md 7.6). */
const KNOWN_ERROR_CODES = [
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
/** An error code known today. Unlike `ErrorCode`, it refuses a misspelt one. */
export type KnownErrorCode = (typeof KNOWN_ERROR_CODES)[number];

// If the code of an error is unknown, the HTTP status decides the class of the error (docs/service.md 7.6).
const errorCodeSchema = openEnum(KNOWN_ERROR_CODES);
/** An error code; a code that the service adds later is a plain string. */
export type ErrorCode = z.output<typeof errorCodeSchema>;

export const apiErrorItemSchema = namedRecord<ApiErrorItem>()({
  /** The code is stable; branch on it (docs/service.md 7.1). */
  code: errorCodeSchema,
  /** A text for people; it may change. */
  message: nullish(z.string()),
});
/** One error as the service reports it. */
export interface ApiErrorItem extends FieldsOf<typeof apiErrorItemSchema> {}

import { ApiError } from '../api-errors.ts';
import { endpoints } from '../endpoints.ts';
import {
  ConnectionError,
  isTrackingError,
  QueueFullError,
  RequestValidationError,
  ResponseValidationError,
  TimeoutError,
} from '../errors.ts';
import { apiErrorOf } from '../http/api-error-of.ts';
import type { WithResponse } from '../http/api-promise.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import type { BulkResult } from '../schemas/bulk.ts';

function codeOf(error: unknown): string {
  if (error instanceof ApiError) return `http_${error.status}`;
  if (error instanceof ConnectionError) return 'connection_failed';
  if (error instanceof TimeoutError) return 'timeout';
  if (error instanceof ResponseValidationError) return 'invalid_response';
  if (error instanceof RequestValidationError) return error.code;
  if (error instanceof QueueFullError) return 'queue_full';
  return 'request_failed';
}

/** The errors of a request as those of its items. */
export function errorItemsOf(error: unknown): readonly ApiErrorItem[] {
  if (error instanceof ApiError && error.errors.length > 0) return error.errors;
  const message = isTrackingError(error) ? error.message : 'The request failed';
  return [{ code: codeOf(error), message }];
}

/** The error of a bulk answer that refused the request as a whole; undefined when it reports on items. */
export function refusalOf({
  data: result,
  response,
  requestId,
  attempts,
}: WithResponse<BulkResult>): ApiError | undefined {
  const hasItems = Array.isArray(result.data) && result.data.length > 0;
  if (hasItems || !result.error) return undefined;
  const { method, path } = endpoints['trackers.createBulk'];
  return apiErrorOf({
    status: response.status,
    errors: [result.error],
    requestId,
    method,
    path,
    headers: response.headers,
    body: result,
    attempts,
    retryAfterMs: undefined,
  });
}

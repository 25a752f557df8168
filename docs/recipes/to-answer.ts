// src/to-answer.ts
import {
  ApiError,
  ConnectionError,
  isTrackingError,
  QueueFullError,
  RateLimitError,
  RequestValidationError,
  ResultsNotReadyError,
  ServerError,
  TimeoutError,
} from 'tracking-client';

/** The fields that visitors fill in. An error in any other field is a bug of your code. */
const VISITOR_FIELDS = ['trackingNumber', 'trackerId'];
const TEMPORARY = [RateLimitError, ServerError, ConnectionError, TimeoutError, QueueFullError];

/** Recognises the results of a tracker that has no events yet. */
function hasNoEvents(outcome: unknown): boolean {
  const events: unknown = Object(outcome).events;
  return Array.isArray(events) && events.length === 0;
}

/**
 * Returns the response for the visitor, or undefined for results with events and for an error that is not a `TrackingError`. Logs
 * errors that need your attention.
 *
 * @param outcome - the error of a call, or its results
 */
export function toAnswer(outcome: unknown, log: (message: string, error: Error) => void = console.error) {
  const headers: Record<string, string> = {};
  const refuse = (status: number, message: string) => ({ status, headers, body: { error: message } });
  if (hasNoEvents(outcome) || outcome instanceof ResultsNotReadyError) return refuse(404, 'No news yet');
  if (!isTrackingError(outcome)) return undefined;
  const error = outcome;
  if (
    error instanceof RequestValidationError &&
    error.issues.every(({ path }) => VISITOR_FIELDS.includes(`${path[0]}`))
  )
    return refuse(400, 'Invalid tracking number');
  // Check the code, not the status: if the base URL is wrong, the status is 404, too.
  if (isTrackingError(error, 'tracker_not_found')) return refuse(404, 'Not found');
  const { callId } = error;
  log(`tracking failed, callId ${callId ?? 'none'}`, error);
  const isPermanent = error instanceof ConnectionError && error.isPermanent; // such as a certificate that has expired
  const isTemporary = !isPermanent && TEMPORARY.some((kind) => error instanceof kind);
  if (isTemporary && error instanceof ApiError && error.retryAfterMs !== undefined)
    headers['retry-after'] = String(Math.ceil(error.retryAfterMs / 1000));
  return {
    status: isTemporary ? 503 : 502,
    headers,
    body: { error: 'Tracking is not available now', callId },
  };
}

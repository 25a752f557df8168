import { readError } from '../common/foreign.ts';
import { kindOf } from '../common/messages.ts';
import { isJsonObject } from '../common/parsing.ts';
import {
  ApiError,
  ConnectionError,
  isTrackingError,
  QueueFullError,
  RequestValidationError,
  ResponseValidationError,
  TimeoutError,
} from '../errors.ts';
import type { ApiErrorItem } from '../schemas/api-error.ts';
import { type BulkItem, type BulkResult, ITEM_STATUSES } from '../schemas/bulk.ts';
import type { Tracker, TrackerInput } from '../schemas/tracker.ts';

/**
 * The outcome of one input:
 * - `created`: a new tracker
 * - `existing`: a tracker with the same payload existed already (docs/service.md 4.2)
 * - `error`: rejected, or never sent, e.g. because the run ended first or the connection was refused
 * - `invalid`: never sent, because it breaks a rule for creation requests
 * - `unknown`: sent, but perhaps not carried out; sending it again is safe (docs/service.md 4.2)
 */
export type BulkStatus = 'created' | 'existing' | 'error' | 'invalid' | 'unknown';

/** The outcome of one input of `trackers.createMany`. */
export interface BulkOutcome {
  /** Position of the input among all inputs, from 0. */
  readonly index: number;
  /** The input as it was given. */
  readonly input: TrackerInput;
  /** Tells whether there is a tracker now. */
  readonly status: BulkStatus;
  /** The tracker, if the service sent one. */
  readonly tracker?: Tracker;
  /**
   * The reasons why there is no tracker. An invalid input has `validation_error` or `shipping_date_outdated`. The codes of other
   * inputs are the service's; if it sent none, they are `http_<status>`, `connection_failed`, `timeout`, `invalid_response` (an
   * unreadable success), `not_in_response` (the response does not mention the input), `queue_full`, `aborted` or `request_failed`.
   */
  readonly errors?: readonly ApiErrorItem[];
}

export type InputResult = Pick<BulkOutcome, 'status' | 'tracker' | 'errors'>;

/** True if a bulk response has an error and reports on no item: it rejects the whole request (docs/service.md 7.9). */
export function isRefusal(payload: unknown): boolean {
  const { data, error } = Object(payload);
  const hasItems = Array.isArray(data) && data.length > 0;
  return !hasItems && Boolean(error);
}

export function toErrorItems(error: unknown): readonly ApiErrorItem[] {
  if (error instanceof ApiError && error.errors.length > 0) return error.errors;
  const message = isTrackingError(error)
    ? error.message
    : `The request failed with an error from outside this client (${readError(error)?.name ?? kindOf(error)}); send this input again`;
  return [{ code: toErrorCode(error), message }];
}

function toErrorCode(error: unknown): string {
  if (error instanceof ApiError) return `http_${error.status}`;
  if (error instanceof ConnectionError) return 'connection_failed';
  if (error instanceof TimeoutError) return 'timeout';
  if (error instanceof ResponseValidationError) return 'invalid_response';
  if (error instanceof RequestValidationError) return error.code;
  if (error instanceof QueueFullError) return 'queue_full';
  return 'request_failed';
}

const NOT_IN_RESPONSE: InputResult = {
  status: 'unknown',
  errors: [
    {
      code: 'not_in_response',
      message:
        'The response does not mention this input, so its tracker may or may not exist; send it again, which is safe',
    },
  ],
};

function toResult({ itemStatus, tracker, errors }: BulkItem): InputResult {
  return {
    status: ITEM_STATUSES.find((status) => status === itemStatus) ?? 'unknown',
    // With `invalidResponse: 'keep'` a field may have any value.
    ...(typeof tracker?.trackerId === 'string' ? { tracker } : {}),
    ...(Array.isArray(errors) && errors.length > 0 ? { errors } : {}),
  };
}

/** The fields of an input that a response repeats. */
export interface Identity {
  readonly trackingNumber: string | undefined;
  readonly clientTrackerId: string | undefined;
}

export function readIdentity(record: unknown): Identity {
  const { trackingNumber, clientTrackerId } = isJsonObject(record) ? record : {};
  const readText = (value: unknown) => (typeof value === 'string' ? value.trim() || undefined : undefined);
  return {
    // The service returns numbers in upper case (docs/service.md 4.7).
    trackingNumber: readText(trackingNumber)?.toUpperCase(),
    clientTrackerId: readText(clientTrackerId),
  };
}

/** Reads the ids of the input from `inputData`, in which the response repeats the input, or else from the tracker. */
function readItemIdentity(item: BulkItem | null): Identity {
  const inputData: unknown = item?.inputData;
  const echo = readIdentity(typeof inputData === 'string' ? { trackingNumber: inputData } : inputData);
  const tracker = readIdentity(item?.tracker);
  return {
    trackingNumber: echo.trackingNumber ?? tracker.trackingNumber,
    clientTrackerId: echo.clientTrackerId ?? tracker.clientTrackerId,
  };
}

function isSame(a: Identity, b: Identity): boolean {
  return a.trackingNumber === b.trackingNumber && a.clientTrackerId === b.clientTrackerId;
}

function isCompatible(a: Identity, b: Identity): boolean {
  const fields = ['trackingNumber', 'clientTrackerId'] as const;
  const shared = fields.filter((field) => a[field] !== undefined && b[field] !== undefined);
  return shared.length > 0 && shared.every((field) => a[field] === b[field]);
}

/**
 * Reads the result of each input from a bulk response. Items may come in another order or be missing, so each is matched by
 * the number and `clientTrackerId` that it repeats. Inputs that look the same get their items in order (docs/service.md 4.4).
 */
export function readResults(inputs: readonly Identity[], { data }: BulkResult): InputResult[] {
  const open = new Map(inputs.entries());
  const results = inputs.map(() => NOT_IN_RESPONSE);
  let items = data ?? [];
  // Find exact matches first. Otherwise an item with only the number could take an input that another item matches exactly.
  for (const isMatch of [isSame, isCompatible]) {
    items = items.filter((item) => {
      const identity = readItemIdentity(item);
      const match = [...open].find(([, input]) => isMatch(identity, input));
      if (match === undefined) return true;
      open.delete(match[0]);
      results[match[0]] = toResult(item);
      return false;
    });
  }
  return results;
}

// Specification: service.md 2.1, 2.2, 2.4; public contract

import { linkedController } from '../common/abort.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import { completeRetry, PATIENT_RETRY, resolveCallOptions } from '../config/call-options.ts';
import { endpoints } from '../endpoints.ts';
import {
  ApiError,
  ConnectionError,
  isTrackingError,
  QueueFullError,
  RequestValidationError,
  ResponseValidationError,
  TimeoutError,
} from '../errors.ts';
import { createApiError } from '../http/api-error.ts';
import { CallFailure, type WithResponse } from '../http/api-promise.ts';
import { type CallContext, execute } from '../http/execute.ts';
import { prepareRequest } from '../http/prepare.ts';
import { mayHaveBeenCarriedOut } from '../http/retry.ts';
import type { BulkRequestOptions } from '../options.ts';
import { type ApiErrorItem, apiErrorItemSchema } from '../schemas/api-error.ts';
import type { BulkItem, BulkResult } from '../schemas/bulk.ts';
import { isJsonObject } from '../schemas/envelope.ts';
import type { Tracker, TrackerInput } from '../schemas/tracker.ts';

/**
 * What became of one input.
 * - `created`: a new tracker
 * - `existing`: the tracker that matches the same payload
 * - `error`: rejected, or never sent because the run ended before
 * - `invalid`: broke a rule for creation requests and was never sent
 * - `unknown`: sent, and it is not known whether it was carried out; sending it again is safe, for what exists is reused
 */
export type BulkStatus = 'created' | 'existing' | 'error' | 'invalid' | 'unknown';

/** What became of one input of `trackers.createMany`. */
export interface BulkOutcome {
  /** Place of the input among all inputs, from 0. */
  readonly index: number;
  /** The input as it was given. */
  readonly input: TrackerInput;
  /** What became of it. */
  readonly status: BulkStatus;
  /** The tracker, where the service sent one. */
  readonly tracker?: Tracker;
  /**
   * Why there is no tracker. The codes are the service's; where it said nothing they are `http_<status>`,
   * `connection_failed`, `timeout`, `invalid_response` (a success that can't be read), `not_in_response` (the response
   * does not mention the input), `queue_full`, `aborted` or `request_failed`.
   */
  readonly errors?: readonly ApiErrorItem[];
}

/** What became of an input, without the input. */
export type InputResult = Pick<BulkOutcome, 'status' | 'tracker' | 'errors'>;

/** One request of a run. */
export class BulkRequest {
  /** True once an attempt has left. */
  wasSent = false;
  readonly #controller: AbortController;
  readonly #unsubscribe: () => void;

  /** @param signal - also cancels the request */
  constructor(signal: AbortSignal) {
    const { controller, unsubscribe } = linkedController(signal);
    this.#controller = controller;
    this.#unsubscribe = unsubscribe;
  }

  cancel(): void {
    this.#controller.abort(new Error('The run was stopped'));
  }

  /** What became of each input; rejects with a CallFailure, or with what failed the request as a whole. */
  async send(
    context: CallContext,
    inputs: readonly TrackerInput[],
    options: BulkRequestOptions,
  ): Promise<InputResult[]> {
    const { config } = context;
    const callOptions = resolveCallOptions(config, 'trackers.createBulk', {
      ...options,
      retry: completeRetry(
        options.retry === false ? { retries: 0 } : options.retry,
        config.retry,
        PATIENT_RETRY,
      ),
      signal: this.#controller.signal,
    });
    try {
      const request = prepareRequest(config, 'trackers.createBulk', { body: inputs });
      const outcome = await execute(context, request, callOptions, () => {
        this.wasSent = true;
      });
      const response = outcome.details();
      const error = wholeRequestError(response);
      if (error !== undefined) throw new CallFailure(error, mayHaveBeenCarriedOut(error));
      return matchItems(inputs, response.data.data ?? []).map(resultOf);
    } finally {
      this.#unsubscribe();
    }
  }
}

/** The error of a bulk response that rejected the request as a whole; undefined when it reports on items. */
function wholeRequestError(answered: WithResponse<BulkResult>): ApiError | undefined {
  const { data: result, response, requestId, attempts } = answered;
  const hasItems = Array.isArray(result.data) && result.data.length > 0;
  if (hasItems || !result.error) return undefined;
  const { data: error } = apiErrorItemSchema.safeParse(result.error);
  const { method, path } = endpoints['trackers.createBulk'];
  const { status, headers } = response;
  const errors = error === undefined ? [] : [error];
  const facts = { status, errors, requestId, method, path, headers, attempts };
  return createApiError({ ...facts, body: result, retryAfterMs: undefined }, `${method} ${response.url}`);
}

/** The errors of a request as those of its items. */
export function errorItemsOf(error: unknown): readonly ApiErrorItem[] {
  if (error instanceof ApiError && error.errors.length > 0) return error.errors;
  const message = isTrackingError(error) ? error.message : 'The request failed';
  return [{ code: codeOf(error), message }];
}

function codeOf(error: unknown): string {
  if (error instanceof ApiError) return `http_${error.status}`;
  if (error instanceof ConnectionError) return 'connection_failed';
  if (error instanceof TimeoutError) return 'timeout';
  if (error instanceof ResponseValidationError) return 'invalid_response';
  if (error instanceof RequestValidationError) return error.code;
  if (error instanceof QueueFullError) return 'queue_full';
  return 'request_failed';
}

const ITEM_STATUSES = ['created', 'existing', 'error'] as const;

function resultOf(item: BulkItem | undefined): InputResult {
  if (item === undefined) {
    const error = { code: 'not_in_response', message: 'The response does not mention this input' };
    return { status: 'unknown', errors: [error] };
  }
  const { itemStatus, tracker, errors } = item;
  return {
    status: ITEM_STATUSES.find((status) => status === itemStatus) ?? 'unknown',
    // Fields are kept as they came when they are not what they should be.
    ...(typeof tracker?.trackerId === 'string' ? { tracker } : {}),
    ...(Array.isArray(errors) && errors.length > 0 ? { errors } : {}),
  };
}

/** The fields that come back as they were sent, and so identify an input for certain (service.md 2.1, 2.2). */
const IDENTIFYING_FIELDS = ['trackingNumber', 'clientTrackerId', 'shipmentReference'] as const;

/** Fields in the form they are compared; null and an empty string say as little as a missing field. */
type Fields = Readonly<Record<string, string | undefined>>;

function comparable(record: unknown): Fields {
  const entries = Object.entries(isJsonObject(record) ? record : {}).flatMap(([field, value]) => {
    if (value === undefined || value === null || value === '') return [];
    const text = typeof value === 'string' ? value.trim() : canonicalJson(value);
    return [[field, field === 'trackingNumber' ? text.toUpperCase() : text]];
  });
  return Object.fromEntries(entries);
}

/** What an item of the response says about the input it is for: the input as the service read it, and the tracker. */
interface Statement {
  readonly echo: Fields;
  readonly tracker: Fields;
}

function statementOf({ inputData, tracker }: BulkItem): Statement {
  const echo = typeof inputData === 'string' ? { trackingNumber: inputData } : inputData;
  return { echo: comparable(echo), tracker: comparable(tracker) };
}

/** True when the response names the input by an identifier, and says nothing that contradicts it. */
function isAbout({ echo, tracker }: Statement, input: Fields): boolean {
  let isNamed = false;
  for (const field of IDENTIFYING_FIELDS) {
    const own = input[field];
    const echoed = echo[field];
    const stored = tracker[field];
    if (echoed !== undefined && echoed !== own) return false;
    // A tracker may have a value that this input left out: it can be an older one.
    if (own !== undefined && stored !== undefined && stored !== own) return false;
    const isSame = own !== undefined && (echoed === own || stored === own);
    if (isSame && field !== 'shipmentReference') isNamed = true;
  }
  return isNamed;
}

/** How much an input resembles an echo: the echoed fields that agree, minus those that do not. */
function resemblance({ echo }: Statement, input: Fields): number {
  return Object.entries(echo).reduce(
    (score, [field, echoed]) => score + (input[field] === echoed ? 1 : -1),
    0,
  );
}

/** The input that resembles the echo most; undefined when that can be several, and it makes a difference which. */
function bestOf(inputs: readonly Fields[], statement: Statement): Fields | undefined {
  const scores = inputs.map((input) => resemblance(statement, input));
  const highest = Math.max(...scores);
  const best = inputs.filter((_, place) => scores[place] === highest);
  const contents = new Set(best.map((input) => canonicalJson(input)));
  return contents.size === 1 ? best[0] : undefined;
}

/**
 * Finds the item of a bulk response that is about each input, by what the item says: the echoed input and the tracker.
 * The service may list them in another order, or fewer of them; a place in the list proves nothing.
 *
 * @returns for each input its item; undefined where no item, or no single one, is certain to be about it
 */
export function matchItems(
  inputs: readonly TrackerInput[],
  items: readonly BulkItem[],
): (BulkItem | undefined)[] {
  const all = inputs.map(comparable);
  const matched = new Map<Fields, BulkItem>();
  let rest = items.map((item) => ({ item, statement: statementOf(item) }));
  for (let before = -1; before !== rest.length; ) {
    before = rest.length;
    // Each match leaves fewer inputs to the items that were not certain yet.
    rest = rest.filter(({ item, statement }) => {
      const possible = all.filter((input) => !matched.has(input) && isAbout(statement, input));
      const best = bestOf(possible, statement);
      if (best !== undefined) matched.set(best, item);
      return best === undefined;
    });
  }
  return all.map((input) => matched.get(input));
}

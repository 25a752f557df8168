import type { ValidationIssue } from '../common/parsing.ts';
import type { ResultsNotReadyError } from '../errors.ts';
import type { RateLimitInfo } from '../limiter/limiter.ts';
import type { FetchResponse } from '../options.ts';

/** A result together with its response. */
export interface WithResponse<T> {
  /** The value that the call itself resolves to. */
  readonly data: T;
  /** The response; its body can still be read. */
  readonly response: Response;
  /** The request's id (`x-request-id`), by which the service's support can find the request (docs/service.md 7.5). */
  readonly requestId: string | undefined;
  /** The rate limit that the headers announce. */
  readonly rateLimit: RateLimitInfo;
  /** How many requests were sent for this call. */
  readonly attempts: number;
  /** The first 20 fields that break the schema of the response and were kept as they came. */
  readonly mismatched: readonly ValidationIssue[];
}

/** The result of a call that succeeded. */
export interface CallResult<T> {
  readonly data: T;
  readonly mismatched: readonly ValidationIssue[];
  /** The headers of the response, which can echo the key. */
  readonly headers: FetchResponse['headers'];
  /** Built on demand, because most callers want the data only. */
  readonly details: () => WithResponse<T>;
  /** Builds the error that the call would reject with if its results counted as missing. */
  readonly createNotReadyError: () => ResultsNotReadyError;
}

/**
 * The promise of a call; it resolves to the data.
 *
 * @example
 * const tracker = await client.trackers.get(id);
 * const { data, requestId, attempts } = await client.trackers.get(id).withResponse();
 */
export interface ApiPromise<T> extends Promise<T> {
  /**
   * Resolves to the data and facts about its response, without sending another request.
   *
   * @returns the data, the response, its request id, rate limit, the number of attempts, and the mismatched fields
   * @throws the error of the call
   */
  withResponse(): Promise<WithResponse<T>>;
}

async function readData<T>(result: Promise<CallResult<T>>): Promise<T> {
  return (await result).data;
}

/** A native promise with one more method: `then`, `catch` and `finally` return promises without it. */
export function createApiPromise<T>(result: Promise<CallResult<T>>): ApiPromise<T> {
  const promise = readData(result);
  // Start from this promise. If the caller handles the rejection of `withResponse()`, the rejection of this promise then also
  // counts as handled.
  const withResponse = () => promise.then(() => result).then(({ details }) => details());
  return Object.assign(promise, { withResponse });
}

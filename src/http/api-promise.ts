import type { ValidationIssue } from '../common/validation.ts';
import { isTrackingError } from '../errors.ts';

/** The rate limit that the headers of one response announce (docs/service.md 6.2). */
export interface RateLimitInfo {
  /** Requests allowed in a window of one second, if announced as a positive integer. */
  readonly limit: number | undefined;
  /** Requests left in the window. */
  readonly remaining: number | undefined;
  /** Time until the limit resets, in milliseconds. */
  readonly resetMs: number | undefined;
}

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
export interface CallOutcome<T> {
  readonly data: T;
  readonly mismatched: readonly ValidationIssue[];
  /** True if the service may have carried out an earlier attempt of this call, too. */
  readonly mayHaveBeenCarriedOutBefore?: boolean;
  /** Built on demand, because most callers want the data only. */
  readonly details: () => WithResponse<T>;
}

/** The reason why a call failed; only used inside the package. */
export class CallFailure {
  /** The error that the call rejects with. */
  readonly error: unknown;
  /** True if the service may have carried out a request of this call. */
  readonly mayHaveBeenCarriedOut: boolean;

  constructor(error: unknown, mayHaveBeenCarriedOut: boolean) {
    this.error = error;
    this.mayHaveBeenCarriedOut = mayHaveBeenCarriedOut;
  }
}

/** The place where a method was called. V8 formats `stack` only when somebody reads it, so capturing costs little. */
export interface CallSite {
  readonly stack?: string;
}

/** Captures the place where `method`, which is running, was called. */
export function captureCallSite(method: (...parameters: never[]) => unknown): CallSite {
  const callSite: CallSite = {};
  Error.captureStackTrace(callSite, method);
  return callSite;
}

/** Gives a `TrackingError` the stack of the method's call, because its own stack shows timers and libraries only. */
export function pointToCallSite(error: unknown, { stack = '' }: CallSite): void {
  if (!isTrackingError(error)) return;
  // A stack without a line break has no frames, e.g. because `Error.stackTraceLimit` is 0.
  const frames = stack.includes('\n') ? stack.slice(stack.indexOf('\n')) : '';
  // An abort reason of the caller may be frozen; `Object.defineProperty` would throw then, and the call would never settle.
  Reflect.defineProperty(error, 'stack', {
    value: `${error.name}: ${error.message}${frames}`,
    configurable: true,
    writable: true,
  });
}

/**
 * The promise of a call; it resolves to the data.
 *
 * @example
 * const tracker = await client.trackers.get(id);
 * const { data, requestId, attempts } = await client.trackers.get(id).withResponse();
 */
export class ApiPromise<T> extends Promise<T> {
  /** `then`, `catch` and `finally` return promises without `withResponse`, because a callback's value has no response. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  readonly #outcome: Promise<CallOutcome<T>>;

  /**
   * @internal
   *
   * @param callSite - where the method was called, for the stack of an error
   */
  constructor(outcome: Promise<CallOutcome<T>>, callSite?: CallSite) {
    super((resolve, reject) => {
      outcome.then(
        ({ data }) => resolve(data),
        (failure) => {
          const error = failure instanceof CallFailure ? failure.error : failure;
          if (callSite !== undefined) pointToCallSite(error, callSite);
          reject(error);
        },
      );
    });
    this.#outcome = outcome;
  }

  /**
   * Resolves to the data and facts about its response, without sending another request.
   *
   * @returns the data, the response, its request id, rate limit, the number of attempts, and the mismatched fields
   * @throws the error of the call
   */
  withResponse(): Promise<WithResponse<T>> {
    // Start from this promise. If the caller handles the rejection of `withResponse()`, the rejection of this promise then also
    // counts as handled.
    return this.then(() => this.#outcome).then((outcome) => outcome.details());
  }
}

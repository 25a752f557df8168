import type { ValidationIssue } from '../common/validation.ts';
import { isTrackingError } from '../errors.ts';

/** The allowance that the headers of one response announce. */
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
  /** The value that awaiting the call itself gives. */
  readonly data: T;
  /** The response; its body can still be read. */
  readonly response: Response;
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
  /** The allowance that the headers announce. */
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

/** Why a call failed; it never leaves the package. */
export class CallFailure {
  /** The error that the call rejects with. */
  readonly error: unknown;
  /** True if a request left, and the service may have carried it out. */
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

/** Gives an error of ours the stack of the method's call, because its own ends in timers and libraries. */
export function pointToCallSite(error: unknown, { stack = '' }: CallSite): void {
  if (!isTrackingError(error)) return;
  // Without a line break there is no frame: `Error.stackTraceLimit` may be 0.
  const frames = stack.includes('\n') ? stack.slice(stack.indexOf('\n')) : '';
  Object.defineProperty(error, 'stack', {
    value: `${error.name}: ${error.message}${frames}`,
    configurable: true,
    writable: true,
  });
}

/**
 * A call that was sent: a promise of its data.
 *
 * @example
 * const tracker = await client.trackers.get(id);
 * const { data, requestId, attempts } = await client.trackers.get(id).withResponse();
 */
export class ApiPromise<T> extends Promise<T> {
  /** `then`, `catch` and `finally` return plain promises, because no response belongs to a value that they change. */
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

  override get [Symbol.toStringTag](): string {
    return 'ApiPromise';
  }

  /**
   * Gives more than the data; sends nothing again.
   *
   * @returns the data, the response, its request id, rate limit, the number of attempts, and the mismatched fields
   */
  withResponse(): Promise<WithResponse<T>> {
    return this.#settled().then((outcome) => outcome.details());
  }

  /**
   * Applies a change to the data of this call.
   *
   * @param change - computes the new data
   * @returns the same call, with the changed data
   */
  map<Next>(change: (data: T) => Next): ApiPromise<Next> {
    const outcome = this.#settled().then((original) => {
      const data = change(original.data);
      return { ...original, data, details: () => ({ ...original.details(), data }) };
    });
    return createApiPromise(outcome);
  }

  /** Derived from this very promise, so that whoever handles the derived promise handles the failure. */
  #settled(): Promise<CallOutcome<T>> {
    return this.then(() => this.#outcome);
  }
}

// Outside of the class, because a bundler renames a class that names itself, and stack traces would show `_ApiPromise`.
function createApiPromise<T>(outcome: Promise<CallOutcome<T>>): ApiPromise<T> {
  return new ApiPromise(outcome);
}

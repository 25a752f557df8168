import type { ValidationIssue } from '../common/validation.ts';

/** What one response's headers say about the allowance. */
export interface RateLimitInfo {
  /** Requests allowed in a window of one second, when announced as a positive integer. */
  readonly limit: number | undefined;
  /** Requests left in the window. */
  readonly remaining: number | undefined;
  /** Time until the limit resets, in milliseconds. */
  readonly resetMs: number | undefined;
}

/** A result together with what came with it. */
export interface WithResponse<T> {
  /** What awaiting the call alone gives. */
  readonly data: T;
  /** The response; its body can still be read. */
  readonly response: Response;
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
  /** What the response's headers say about the allowance. */
  readonly rateLimit: RateLimitInfo;
  /** How many requests were sent for this call. */
  readonly attempts: number;
  /**
   * What of the response is not as it should be, the first 20: fields that were kept as they came, and items of lists
   * without an id, which were left out. Empty when nothing is.
   */
  readonly mismatched: readonly ValidationIssue[];
}

/** The one execution behind an `ApiPromise`. */
export interface CallOutcome<T> {
  readonly data: T;
  /** Built on demand: most callers want the data only. */
  readonly details: () => WithResponse<T>;
}

/**
 * A call that starts when it is awaited, or when one of its methods is called, and runs once.
 *
 * @example
 * const tracker = await client.trackers.get(id);
 * const { data, requestId, attempts } = await client.trackers.get(id).withResponse();
 */
export class ApiPromise<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'ApiPromise';
  readonly #start: () => Promise<CallOutcome<T>>;
  #outcome: Promise<CallOutcome<T>> | undefined;

  /** @internal */
  constructor(start: () => Promise<CallOutcome<T>>) {
    this.#start = start;
  }

  #run(): Promise<CallOutcome<T>> {
    this.#outcome ??= this.#start();
    return this.#outcome;
  }

  /**
   * Starts the call, unless it has started, and gives more than the data.
   *
   * @returns the data, the response, its request id, rate limit, the number of attempts, and what is not as it should be
   */
  async withResponse(): Promise<WithResponse<T>> {
    const outcome = await this.#run();
    return outcome.details();
  }

  // biome-ignore lint/suspicious/noThenProperty: being awaitable is what this class is for.
  then<Fulfilled = T, Rejected = never>(
    onFulfilled?: ((value: T) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#run()
      .then((outcome) => outcome.data)
      .then(onFulfilled, onRejected);
  }

  catch<Rejected = never>(
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<T | Rejected> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally);
  }

  /**
   * Applies a change to the data of this call; still lazy.
   *
   * @param change - what to make of the data
   * @returns a call that resolves to the changed data
   */
  map<Next>(change: (data: T) => Next): ApiPromise<Next> {
    return createApiPromise(async () => {
      const outcome = await this.#run();
      const data = change(outcome.data);
      return { data, details: () => ({ ...outcome.details(), data }) };
    });
  }
}

// Outside of the class, as in client.ts: stack traces would show `_ApiPromise`.
function createApiPromise<T>(start: () => Promise<CallOutcome<T>>): ApiPromise<T> {
  return new ApiPromise(start);
}

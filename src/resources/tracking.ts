import type { Config } from '../config/config.ts';
import type { ApiPromise } from '../http/api-promise.ts';
import { callEndpoint } from '../http/execute.ts';
import type { RequestOptions } from '../options.ts';
import type { TrackingSearchInput } from '../schemas/tracker.ts';
import type { PerCallTracking } from '../schemas/tracking.ts';

/** The method of the per-call plan, a paid look-up that creates no tracker (docs/service.md 1.2). */
export class TrackingResource {
  readonly #config: Config;

  /** @internal */
  constructor(config: Config) {
    this.#config = config;
  }

  /**
   * Looks a tracking number up once, which can take a minute (docs/service.md 6.4). Every call is paid for (1.2), so only a 429
   * or a request that was never sent is retried.
   *
   * @param input - the tracking number and hints about courier and destination
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the shipments found; numbers are not unique
   * @throws RequestValidationError before anything is sent; NoActiveSubscriptionError without a per-call subscription
   */
  search(input: TrackingSearchInput, options?: RequestOptions): ApiPromise<PerCallTracking[]> {
    return callEndpoint(this.#config, 'tracking.search', { body: input }, options);
  }
}

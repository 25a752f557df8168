import type { ApiPromise } from '../http/api-promise.ts';
import { type CallContext, callEndpoint } from '../http/execute.ts';
import type { RequestOptions } from '../options.ts';
import type { Courier } from '../schemas/courier.ts';
import type { PerCallTracking, TrackingSearchInput } from '../schemas/tracking.ts';

/** The couriers the service can ask. */
export class CouriersResource {
  readonly #context: CallContext;

  /** @internal */
  constructor(context: CallContext) {
    this.#context = context;
  }

  /**
   * Lists the couriers and their codes.
   *
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns all couriers
   * @throws ApiError; and like every call (see `TrackingClient`)
   * @example
   * const couriers = await client.couriers.list();
   * couriers.find((courier) => courier.courierCode === 'us-post')?.courierName; // 'USPS'
   */
  list(options?: RequestOptions): ApiPromise<Courier[]> {
    return callEndpoint(this.#context, 'couriers.list', {}, options);
  }
}

/** The per-call plan: one paid look-up, no tracker. */
export class TrackingResource {
  readonly #context: CallContext;

  /** @internal */
  constructor(context: CallContext) {
    this.#context = context;
  }

  /**
   * Looks a tracking number up once. Every call is paid for, so a failure after sending is never repeated; only a 429 or
   * a refused connection is. It can take a minute.
   *
   * @param input - the tracking number and hints about courier and destination
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns the shipments found; numbers are not unique
   * @throws RequestValidationError before anything is sent; NoActiveSubscriptionError without a per-call subscription;
   * QuotaExceededError; and like every call (see `TrackingClient`)
   * @example
   * const [found] = await client.tracking.search({ trackingNumber: '9400115901047177598206' });
   */
  search(input: TrackingSearchInput, options?: RequestOptions): ApiPromise<PerCallTracking[]> {
    return callEndpoint(this.#context, 'tracking.search', { body: input }, options);
  }
}

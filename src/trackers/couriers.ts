import type { ApiPromise } from '../http/api-promise.ts';
import type { Caller } from '../http/caller.ts';
import type { RequestOptions } from '../options.ts';
import type { Courier } from '../schemas/courier.ts';

/** The couriers the service can ask. */
export class CouriersResource {
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Lists the couriers and their codes.
   *
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns all couriers
   * @throws ApiError; and like every call (see `TrackingClient`)
   * @specification service.md 4; public contract
   * @example
   * const couriers = await client.couriers.list();
   * couriers.find((courier) => courier.courierCode === 'us-post')?.courierName; // 'USPS'
   */
  list(options?: RequestOptions): ApiPromise<Courier[]> {
    return this.#caller.call('couriers.list', {}, options);
  }
}

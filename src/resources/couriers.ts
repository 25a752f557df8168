import type { ApiPromise } from '../http/api-promise.ts';
import type { Caller } from '../http/caller.ts';
import type { RequestOptions } from '../options.ts';
import type { Courier } from '../schemas/courier.ts';

/** The couriers the service can ask. */
export class CouriersResource {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Lists the couriers and their codes (service.md 4; the record is from the public contract).
   *
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @throws ApiError and its kinds; ConnectionError; TimeoutError; ResponseValidationError
   * @example
   * const couriers = await client.couriers.list();
   * couriers.find((courier) => courier.courierCode === 'us-post')?.courierName; // 'USPS'
   */
  list(options?: RequestOptions): ApiPromise<Courier[]> {
    return this.#caller.call('couriers.list', {}, options);
  }
}

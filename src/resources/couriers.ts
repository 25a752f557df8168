import type { Config } from '../config/config.ts';
import type { ApiPromise } from '../http/api-promise.ts';
import { callEndpoint } from '../http/execute.ts';
import type { RequestOptions } from '../options.ts';
import type { Courier } from '../schemas/courier.ts';

/** The couriers that the service supports. */
export class CouriersResource {
  readonly #config: Config;

  /** @internal */
  constructor(config: Config) {
    this.#config = config;
  }

  /**
   * Lists the couriers and their codes.
   *
   * @param options - signal, timeouts, retries, headers and priority of this call
   * @returns all couriers
   * @throws ApiError
   */
  list(options?: RequestOptions): ApiPromise<Courier[]> {
    return callEndpoint(this.#config, 'couriers.list', {}, options);
  }
}

import { checkIsObject } from './common/check-options.ts';
import { type Config, resolveConfig } from './config/config.ts';
import { ENDPOINT_NAMES, type EndpointName, endpoints } from './endpoints.ts';
import { ConfigurationError } from './errors.ts';
import type { ApiPromise } from './http/api-promise.ts';
import { startCall } from './http/execute.ts';
import { prepareRawRequest, type RawRequest } from './http/prepare.ts';
import type { BucketSnapshot } from './limiter/limiter.ts';
import type { RequestOptions, TrackingClientOptions } from './options.ts';
import { CouriersResource, TrackersResource, TrackingResource } from './resources.ts';

/**
 * A client of one account of the service.
 *
 * Every call can reject with an ApiError, such as RateLimitError, if the service rejects the request or fails; with a
 * ConnectionError, TimeoutError, ResponseValidationError, QueueFullError or ConfigurationError; and with the signal's reason.
 *
 * @example
 * const client = new TrackingClient({ baseUrl: 'https://api.example.com/public/v1', apiKey: process.env.TRACKING_API_KEY });
 * const tracker = await client.trackers.create({ trackingNumber: 'LA680658838NL' });
 */
export class TrackingClient {
  /** Methods that create, list, read and update trackers, read or poll their results, and resend their webhooks. */
  readonly trackers: TrackersResource;
  /** `search` looks a number up once; it needs the per-call plan, in which every call is paid for (docs/service.md 1.2). */
  readonly tracking: TrackingResource;
  /** The couriers that the service supports. */
  readonly couriers: CouriersResource;
  #options: TrackingClientOptions;
  readonly #config: Config;

  /**
   * @param options - where the service is and how to call it; see each option
   * @throws ConfigurationError that names the missing or invalid option
   */
  constructor(options: TrackingClientOptions = {}) {
    this.#options = { ...options };
    this.#config = resolveConfig(options);
    this.trackers = new TrackersResource(this.#config);
    this.tracking = new TrackingResource(this.#config);
    this.couriers = new CouriersResource(this.#config);
  }

  /**
   * Sends a request for which the client has no method, with the same API key, limiter, deadlines, retries and errors.
   *
   * @param request - `method`, `path` (below the base URL), `query`, `body` and `idempotent` (true if a second request does no
   * harm), and the options of this call
   * @returns the body of the response, unchecked: read it with your own validator
   * @throws RequestValidationError for a wrong field, e.g. a path that could leave the base URL; else the errors of every call
   * @example
   * const body = z.object({ data: z.unknown() }).parse(await client.request({ method: 'GET', path: '/couriers' }));
   */
  request(request: RawRequest & RequestOptions): ApiPromise<unknown> {
    // If a caller without types passes null, the spread gives an empty object, and the validation error names the missing fields.
    const { method, path, query, body, idempotent, ...options } = { ...request };
    const raw = { method, path, query, body, idempotent };
    return startCall(this.#config, 'request', options, () => prepareRawRequest(this.#config, raw));
  }

  /**
   * Reads the state of every endpoint's bucket at this moment.
   *
   * @returns a snapshot for each endpoint, by its name
   */
  rateLimits(): Record<EndpointName, BucketSnapshot> {
    const { baseUrl, bucketAccount, limiter } = this.#config;
    const entries = ENDPOINT_NAMES.map((endpoint) => {
      const limit = endpoints[endpoint].limitPerSecond;
      const idle = { limit, inUse: 0, queued: 0, pausedUntil: null };
      return [endpoint, limiter?.snapshot({ baseUrl, account: bucketAccount, endpoint }) ?? idle] as const;
    });
    // Safe cast: `ENDPOINT_NAMES` contains every key of the table.
    return Object.fromEntries(entries) as Record<EndpointName, BucketSnapshot>;
  }

  /**
   * Creates a client with other options. Both clients share one limiter, so the calls of one account count together. With another
   * `apiKey`, the new client counts as another account, unless the option `account` is set.
   *
   * @param options - the options that differ; those that are missing or undefined are inherited
   * @returns another client; for a subclass, it is made by the constructor of the subclass
   * @throws ConfigurationError that names the invalid option; also for `rateLimit` and `limiter`, which only
   * `new TrackingClient` accepts
   * @example
   * const patient = client.withOptions({ timeoutMs: 120_000 });
   */
  withOptions(options: Omit<TrackingClientOptions, 'rateLimit' | 'limiter'>): TrackingClient {
    checkIsObject('options', options);
    const changes = Object.entries(options).filter(([, value]) => value !== undefined);
    const refused = changes.find(([name]) => name === 'rateLimit' || name === 'limiter')?.[0];
    if (refused !== undefined) {
      throw new ConfigurationError(
        `\`withOptions\` does not accept \`${refused}\`, because the new client shares the limiter of the old client; pass it to \`new TrackingClient\``,
      );
    }
    const { limiter } = this.#config;
    const account = options.account ?? this.#options.account;
    const keepsFunction = options.apiKey === undefined && typeof this.#options.apiKey === 'function';
    // Safe cast: an instance's constructor is its class. A subclass must accept the options of this class.
    const Client = this.constructor as typeof TrackingClient;
    const client = new Client({
      ...this.#options,
      limiter,
      rateLimit: limiter === undefined ? false : undefined,
      ...Object.fromEntries(changes),
      // The account of a function is a random id, so the new client cannot compute the same one.
      account: account ?? (keepsFunction ? this.#config.bucketAccount : undefined),
    });
    // The new client must not inherit a random id as if it were the option `account`: its own `withOptions` may change the key.
    client.#options = { ...client.#options, account };
    return client;
  }
}

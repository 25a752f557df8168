import { z } from 'zod';
import { checkIsObject } from './common/option-checks.ts';
import { type Config, resolveConfig } from './config/config.ts';
import { ENDPOINT_NAMES, type EndpointName, endpoints } from './endpoints.ts';
import type { ApiPromise } from './http/api-promise.ts';
import { Caller } from './http/call.ts';
import { prepareRawCall, type RawRequest } from './http/request.ts';
import type { BucketSnapshot } from './limiter/limiter.ts';
import type { RequestOptions, TrackingClientOptions } from './options.ts';
import { CouriersResource, TrackingResource } from './trackers/lookups.ts';
import { TrackersResource } from './trackers/trackers.ts';

/**
 * A client of one account of the service.
 *
 * Every call can reject with AuthenticationError, PermissionDeniedError, RateLimitError, ServerError or another ApiError
 * when the service rejects the request or fails; ConnectionError; TimeoutError; ResponseValidationError; QueueFullError when too many
 * calls wait; ConfigurationError when its options make no sense; and the signal's own reason on abort.
 *
 * @example
 * const client = new TrackingClient({ baseUrl: 'https://api.example.com/public/v1', apiKey: process.env.TRACKING_API_KEY });
 * const tracker = await client.trackers.create({ trackingNumber: 'LA680658838NL' });
 */
export class TrackingClient {
  /** Trackers: create, list, get, update, results, webhooks. */
  readonly trackers: TrackersResource;
  /** The per-call plan. */
  readonly tracking: TrackingResource;
  /** The couriers the service can ask. */
  readonly couriers: CouriersResource;
  readonly #options: TrackingClientOptions;
  readonly #config: Config;
  readonly #caller: Caller;

  /**
   * @param options - where the service is and how to call it; see each option
   * @throws ConfigurationError naming the option that is missing or makes no sense
   */
  constructor(options: TrackingClientOptions = {}) {
    this.#config = resolveConfig(options);
    this.#options = { ...options };
    this.#caller = new Caller(this.#config);
    this.trackers = new TrackersResource(this.#caller);
    this.tracking = new TrackingResource(this.#caller);
    this.couriers = new CouriersResource(this.#caller);
  }

  /**
   * Sends any other request through the same pipeline: key, limiter, deadlines, retries and errors.
   *
   * @param request - method and path below the base URL, `query`, `body`, a `schema` for the response; and the options
   * of this call
   * @returns the body of the response as it is, or what `schema` makes of it
   * @throws RequestValidationError for a path that could leave the base URL; and like every call
   * @example
   * const body = await client.request({ method: 'GET', path: '/couriers', schema: z.object({ data: z.unknown() }) });
   */
  request<Schema extends z.ZodType = z.ZodType<unknown>>(
    request: RawRequest<Schema> & RequestOptions,
  ): ApiPromise<z.output<Schema>> {
    // A copy, which of null is empty: then the rejection says what is missing.
    const { method, path, query, body, schema: given, idempotent, ...options } = { ...request };
    // Sound: without a schema `Schema` is its default, whose output is unknown.
    const schema = (given ?? z.unknown()) as z.ZodType<z.output<Schema>>;
    const raw = { method, path, query, body, idempotent };
    return this.#caller.start(() => prepareRawCall(this.#config, raw, schema), 'request', options);
  }

  /**
   * The state of every endpoint's bucket at this moment.
   *
   * @returns a snapshot for each endpoint, by its name
   */
  rateLimits(): Record<EndpointName, BucketSnapshot> {
    const { baseUrl, account, limiter, limits } = this.#config;
    const entries = ENDPOINT_NAMES.map((endpoint) => {
      const limit = limits[endpoint] ?? endpoints[endpoint].limitPerSecond;
      const idle = { limit, inUse: 0, queued: 0, pausedUntil: null };
      return [endpoint, limiter?.snapshot({ baseUrl, account, endpoint }) ?? idle] as const;
    });
    // Sound: `ENDPOINT_NAMES` holds every key of the table.
    return Object.fromEntries(entries) as Record<EndpointName, BucketSnapshot>;
  }

  /**
   * A client with other options that shares this one's limiter, so both stay within one allowance.
   *
   * @param options - what differs from this client's options
   * @returns another client
   * @throws ConfigurationError naming the option that makes no sense
   * @example
   * const patient = client.withOptions({ timeoutMs: 120_000 });
   */
  withOptions(options: TrackingClientOptions): TrackingClient {
    checkIsObject('options', options);
    // An option that is given as undefined is one that does not differ.
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const { rateLimit = {}, ...others } = this.#options;
    const isUnlimited =
      (options.rateLimit ?? (options.limiter === undefined ? rateLimit : undefined)) === false;
    const shared = {
      ...others,
      limiter: isUnlimited ? undefined : this.#config.limiter,
      // The rest of it set the limiter up, which is there already.
      rateLimit: isUnlimited ? false : { limits: rateLimit === false ? undefined : rateLimit.limits },
    } as const;
    return createClient({ ...shared, ...Object.fromEntries(given) });
  }
}

// Outside of the class: a bundler renames a class that names itself, and stack traces would show `_TrackingClient`.
function createClient(options: TrackingClientOptions): TrackingClient {
  return new TrackingClient(options);
}

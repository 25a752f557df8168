import * as z from 'zod';
import { checkOneOf, checkOptions } from '../common/check-options.ts';
import { trimSlashes } from '../common/urls.ts';
import type { EndpointName } from '../endpoints.ts';
import type { Tracker } from '../schemas/tracker.ts';
import {
  type FakeTrackingServiceOptions,
  type RecordedRequest,
  resolveOptions,
  speedOption,
} from './options.ts';
import type { Failure, PlannedFailure } from './service/failures.ts';
import type { FakeRequest, Reply } from './service/http.ts';
import { serve } from './service/serve.ts';
import { FakeState } from './service/state.ts';
import { buildTrackerRecord, type FakeCourier } from './service/trackers.ts';
import { FakeShipment, type ShipmentKey } from './shipments/fake-shipment.ts';
import { PLAY_NAMES, type PlayName } from './shipments/shipment.ts';
import {
  control,
  createFetch,
  type FakeServer,
  type FetchLike,
  type ListenOptions,
  listen,
  listenOptions,
} from './transports.ts';
import type { WebhookQueue } from './webhooks/queue.ts';

const playOptions = z.strictObject({ speed: speedOption.optional() });

/** A tracking service in memory, for tests; see `createFakeTrackingService`. */
export interface FakeTrackingService {
  /**
   * Base URL for a client with `fetch: fake.fetch`. Such a client may also use any other base URL that ends with a version, such
   * as `/v1`.
   */
  readonly baseUrl: string;
  /** A key that the fake accepts. */
  readonly apiKey: string;
  /** A `fetch` that goes straight into the fake, without a network. */
  readonly fetch: FetchLike;
  /** @internal Carries out one request; `fetch`, `listen` and the MSW handlers are built on it. */
  readonly serve: (request: FakeRequest) => Promise<Reply>;
  /** The latest requests, at most `historyLimit`, oldest first. */
  readonly requests: readonly RecordedRequest[];
  /** Every tracker of the account, oldest first. */
  readonly trackers: readonly Tracker[];
  /** The couriers of the service; a test may change the array. */
  readonly couriers: FakeCourier[];
  /** The webhooks that wait to be pushed, and the webhooks that were pushed before. */
  readonly webhooks: WebhookQueue;
  /**
   * Serves the fake on loopback HTTP. `GET` and `HEAD` of `/`, `/health` and the base URL get 200 without a key, and are not recorded.
   *
   * @param options - see `ListenOptions`
   * @returns a server; close it when done
   * @throws ConfigurationError for an invalid option; the system's error, e.g. when the port is taken
   */
  listen(options?: ListenOptions): Promise<FakeServer>;
  /**
   * Returns an object with which a test changes all trackers of one tracking number, or a single tracker.
   *
   * @param key - a tracking number, upper or lower case, which may have no tracker yet; or the id of one tracker
   * @returns the shipment
   * @throws ConfigurationError for an invalid tracking number, or an id that no tracker has
   * @example fake.shipment({ trackerId: tracker.trackerId }).deliver()
   */
  shipment(key: ShipmentKey): FakeShipment;
  /**
   * Plays a scenario: events happen to a shipment one after the other, on the fake's clock. The scenario of a milestone ends at this
   * milestone. An hour after the last event of `delivered`, `exception` and `customs`, tracking stops. Each tracker shows the events
   * as events of its own courier, if it names one.
   *
   * @param trackingNumber - the tracking number of the shipment
   * @param name - the name of the scenario
   * @param options - `speed`: how many times faster than real time, 1 to `Infinity` (at once); default: the option `speed`
   * of the fake
   * @returns the shipment
   * @throws ConfigurationError for an invalid tracking number, an unknown scenario, an unknown option or a speed below 1
   */
  play(
    trackingNumber: string,
    name: PlayName,
    options?: { readonly speed?: number | undefined },
  ): FakeShipment;
  /**
   * Makes the next requests fail, over every transport alike.
   *
   * @param endpoint - an endpoint of the table, or `*` for all
   * @param failure - what goes wrong, and how often (default once)
   * @returns how many more requests will fail, and a way to end the failure
   * @throws ConfigurationError for an unknown endpoint or an invalid failure
   * @example
   * fake.fail('trackers.create', { status: 429, retryAfterMs: 1_000 });
   * fake.fail('*', { kind: 'reset', times: 2 });
   */
  fail(endpoint: EndpointName | '*', failure: Failure): PlannedFailure;
  /** Forgets everything and starts the ids anew. Servers go on listening. */
  reset(): void;
}

/**
 * Creates a tracking service in memory: every endpoint of the table, with its rules, limits and errors.
 * Two fakes share nothing. The fake imports no HTTP client and no test runner.
 *
 * Tracking stops by itself 14 days after a delivery, and after 90 days without an event (docs/service.md 5.1).
 *
 * @param options - see `FakeTrackingServiceOptions`; all are optional
 * @returns the fake
 * @throws ConfigurationError for an invalid option
 * @example
 * const fake = createFakeTrackingService();
 * const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
 */
export function createFakeTrackingService(options: FakeTrackingServiceOptions = {}): FakeTrackingService {
  const resolved = resolveOptions(options);
  let state = new FakeState(resolved);
  const { origin, pathname } = new URL(resolved.baseUrl);
  const basePath = trimSlashes(pathname);
  const serveRequest = (request: FakeRequest) => serve(state, request);
  const shipment = (key: ShipmentKey) => new FakeShipment(() => state, key);
  const fake: FakeTrackingService = {
    baseUrl: origin + basePath,
    apiKey: options.apiKeys?.[0] ?? 'test-api-key',
    fetch: createFetch(serveRequest, basePath),
    serve: serveRequest,
    get requests() {
      return state.requests;
    },
    get trackers() {
      const nowMs = state.now();
      return state.trackers.all().map((tracker) => buildTrackerRecord(tracker, nowMs));
    },
    get couriers() {
      return state.couriers;
    },
    get webhooks() {
      return state.webhooks;
    },
    async listen(options = {}) {
      const { control: isControlled, ...address } = checkOptions(listenOptions, options);
      const serveAll = async (request: FakeRequest): Promise<Reply> => {
        const response = isControlled ? control(fake, request, resolved.apiKeys) : undefined;
        return response === undefined ? serveRequest(request) : { kind: 'response', response };
      };
      return listen(serveAll, basePath, address);
    },
    shipment,
    play(trackingNumber, name, options = {}) {
      checkOneOf('name', name, PLAY_NAMES);
      const { speed = resolved.speed } = checkOptions(playOptions, options);
      const played = shipment(trackingNumber);
      state.startScenario(state.getParcel(trackingNumber), name, speed);
      return played;
    },
    fail: (endpoint, failure) => state.failures.plan(endpoint, failure),
    reset() {
      state = new FakeState(resolved);
    },
  };
  return fake;
}

import { checkOneOf } from '../common/option-checks.ts';
import type { EndpointName } from '../endpoints.ts';
import type { Tracker } from '../schemas/tracker.ts';
import { checkSpeed, type FakeTrackingServiceOptions, resolveOptions } from './options.ts';
import type { FakeCourier } from './service/couriers.ts';
import { type Failure, Failures, type PlannedFailure } from './service/failures.ts';
import { type RecordedRequest, RequestLog } from './service/request-log.ts';
import { type Outcome, type RawRequest, serve } from './service/serve.ts';
import type { FakeState } from './service/state.ts';
import { trackerView } from './service/views.ts';
import { FakeShipment } from './shipments/fake-shipment.ts';
import { PLAY_NAMES, type PlayName } from './shipments/plays.ts';
import { createFetch, type FetchLike } from './transport/fetch.ts';
import { type FakeServer, type ListenOptions, listen } from './transport/http-server.ts';
import type { WebhookQueue } from './webhooks/webhook-queue.ts';
import { World } from './world.ts';

/** A tracking service in memory, for tests; see `createFakeTrackingService`. */
export interface FakeTrackingService {
  /** Base URL to give to a client together with `fetch`; any other one whose path ends with `v1` works too. */
  readonly baseUrl: string;
  /** A key that the fake accepts. */
  readonly apiKey: string;
  /** Goes straight into the fake, without a network. */
  readonly fetch: FetchLike;
  /** Carries out one request of any transport; `fetch`, `listen` and the MSW handlers are built on it. */
  readonly serve: (request: RawRequest) => Promise<Outcome>;
  /** Every request so far, oldest first; the latest ones where there is a `historyLimit`. */
  readonly requests: readonly RecordedRequest[];
  /** Every tracker of the account, oldest first. */
  readonly trackers: readonly Tracker[];
  /** The couriers; change the array to change what the service knows. */
  readonly couriers: FakeCourier[];
  /** What waits to be pushed, and what was. */
  readonly webhooks: WebhookQueue;
  /**
   * Serves the fake on loopback HTTP.
   *
   * @param options - see `ListenOptions`
   * @returns a server; close it when done
   * @throws the system's own error when the port is taken
   */
  listen(options?: ListenOptions): Promise<FakeServer>;
  /**
   * The verbs of a test about one tracking number.
   *
   * @param trackingNumber - in any case; a tracker of it need not exist yet
   * @returns its shipment
   * @throws ConfigurationError when it is no tracking number
   */
  shipment(trackingNumber: string): FakeShipment;
  /**
   * Lets a story happen to a shipment, on the fake's clock.
   *
   * @param trackingNumber - whose shipment
   * @param name - which story
   * @param options - `speed`: how many times faster than real time, at least 1; default the fake's `speed`; `Infinity` for at once
   * @returns the shipment
   * @throws ConfigurationError for an unknown play or a speed below 1
   */
  play(trackingNumber: string, name: PlayName, options?: { readonly speed?: number }): FakeShipment;
  /**
   * Makes the next requests fail, over every transport alike.
   *
   * @param endpoint - an endpoint of the table, or `*` for all
   * @param failure - what goes wrong, and how often (default once)
   * @returns what is left of it, and a way to end it
   * @throws ConfigurationError when endpoint or failure make no sense
   * @example
   * fake.fail('trackers.create', { status: 429, retryAfter: 1 });
   * fake.fail('*', { kind: 'reset', times: 2 });
   */
  fail(endpoint: EndpointName | '*', failure: Failure): PlannedFailure;
  /** Back to the state after creation: nothing is left, and ids start anew. Servers go on listening. */
  reset(): void;
}

function basePathOf({ pathname }: URL): string {
  return pathname.replace(/\/+$/, '');
}

/**
 * Creates a tracking service in memory: every endpoint of the table, with its rules, limits and errors.
 * Two fakes share nothing. It imports no HTTP client and no test runner.
 *
 * @param options - see `FakeTrackingServiceOptions`; every one may be left out
 * @returns the fake
 * @throws ConfigurationError when an option makes no sense
 * @specification service.md 1, 2, 4, 5, 6, 7, 8; public contract
 * @example
 * const fake = createFakeTrackingService();
 * const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
 */
export function createFakeTrackingService(options: FakeTrackingServiceOptions = {}): FakeTrackingService {
  const resolved = resolveOptions(options);
  const createState = (): FakeState => ({
    world: new World(resolved),
    failures: new Failures(),
    requests: new RequestLog(resolved.historyLimit),
  });
  let state = createState();
  const basePath = basePathOf(resolved.baseUrl);
  const serveRaw = (raw: RawRequest) => serve(state, raw);
  const shipment = (trackingNumber: string) => new FakeShipment(() => state.world, trackingNumber);
  return {
    baseUrl: resolved.baseUrl.origin + basePath,
    apiKey: options.apiKeys?.[0] ?? 'test-api-key',
    fetch: createFetch(serveRaw, basePath),
    serve: serveRaw,
    get requests() {
      return state.requests.entries;
    },
    get trackers() {
      const { world } = state;
      world.now();
      return world.trackers
        .all()
        .map((tracker) => trackerView(tracker, world.shipment(tracker.trackingNumber)));
    },
    get couriers() {
      return state.world.couriers;
    },
    get webhooks() {
      return state.world.webhooks;
    },
    listen: (listenOptions) => listen(serveRaw, basePath, listenOptions),
    shipment,
    play(trackingNumber, name, { speed = resolved.speed } = {}) {
      checkOneOf('name', name, PLAY_NAMES);
      checkSpeed(speed);
      const played = shipment(trackingNumber);
      state.world.play(state.world.shipment(trackingNumber), name, speed);
      return played;
    },
    fail: (endpoint, failure) => state.failures.plan(endpoint, failure),
    reset() {
      state = createState();
    },
  };
}

// Specification: service.md 1, 2, 4, 5, 6, 7, 8; public contract
import { checkOneOf, refuseOption } from '../common/option-checks.ts';
import type { EndpointName } from '../endpoints.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { trackingNumber as trackingNumberRule } from '../schemas/identifier.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { ProofOfDelivery } from '../schemas/webhook.ts';
import {
  checkSpeed,
  type FakeTrackingServiceOptions,
  type RecordedRequest,
  resolveOptions,
} from './options.ts';
import type { FakeCourier } from './service/couriers.ts';
import type { Failure, PlannedFailure } from './service/failures.ts';
import type { Outcome, RawRequest } from './service/http.ts';
import { serve } from './service/serve.ts';
import { FakeState } from './service/state.ts';
import { trackerView } from './service/trackers.ts';
import { PLAY_NAMES, type PlayName } from './shipments/plays.ts';
import type { EventInput, ShipmentInput, ShipmentState } from './shipments/shipment.ts';
import { createFetch, type FakeServer, type FetchLike, type ListenOptions, listen } from './transports.ts';
import type { WebhookQueue } from './webhooks/queue.ts';

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
   * Lets events happen to a shipment one after the other, on the fake's clock.
   *
   * @param trackingNumber - whose shipment
   * @param name - which play
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

/**
 * The verbs of a test about one tracking number; each returns the shipment, so they chain.
 *
 * Every tracker of the number knows what a verb adds at once. Trackers created later have it
 * `resultsDelayMs` after their creation.
 *
 * @example
 * fake.shipment('RR123456785CN')
 *   .addEvent({ statusMilestone: 'in_transit', location: 'Beijing' })
 *   .deliver()
 *   .stopTracking();
 */
export class FakeShipment {
  readonly #state: () => FakeState;
  /** In upper case. */
  readonly trackingNumber: string;

  /** @internal */
  constructor(state: () => FakeState, trackingNumber: string) {
    if (!trackingNumberRule.safeParse(trackingNumber).success)
      refuseOption('trackingNumber', 'a tracking number as in section 2.1', trackingNumber);
    this.#state = state;
    this.trackingNumber = trackingNumber.toUpperCase();
  }

  /** What happened so far, oldest first. */
  get events(): readonly TrackingEvent[] {
    return [...this.#current().events];
  }

  /** False once the service has given the shipment up. */
  get isTracked(): boolean {
    return !this.#current().isStopped;
  }

  /**
   * Adds events, which every tracker of the number pushes as one webhook.
   *
   * @param events - what to say, oldest first; id, time, order and status are filled in where left out
   * @example shipment.addEvent({ statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-04T17:12:57' })
   */
  addEvent(...events: readonly EventInput[]): this {
    return this.#change((shipment, state, nowMs) => {
      state.addEvents(shipment, events.length === 0 ? [{}] : events, nowMs);
    });
  }

  /**
   * Adds an event that says delivered. Tracking goes on until `stopTracking`.
   *
   * @param event - what else it says
   */
  deliver(event: EventInput = {}): this {
    return this.addEvent({ statusMilestone: 'delivered', ...event });
  }

  /** The service gives the shipment up: `isTracked` turns false for all trackers of the number, also later ones. */
  stopTracking(): this {
    return this.#change((shipment, state, nowMs) => state.stopTracking(shipment, nowMs));
  }

  /**
   * Sets fields of the shipment, over what events and trackers say.
   *
   * @param fields - the fields to set; others stay
   * @example shipment.update({ delivery: { aiPredictiveDeliveryDate: '2026-03-09' } })
   */
  update(fields: ShipmentInput): this {
    return this.#change((shipment) => {
      shipment.fields = { ...shipment.fields, ...fields };
    });
  }

  /**
   * Queues a proof of delivery, topic `tracking/pod`, for every tracker of the number.
   *
   * @param proof - what it says; a signature to download where left out
   */
  proveDelivery(proof: ProofOfDelivery['data'] = {}): this {
    return this.#change((shipment, state, nowMs) => {
      const courier = shipment.events.at(-1)?.courierCode ?? 'us-post';
      const downloadUrl = `https://tracking.test/proofs/${this.trackingNumber}.pdf`;
      const content = { type: 'signature', text: null, downloadUrl };
      state.pushProof(shipment, { status: 'found', courier, content, ...proof }, nowMs);
    });
  }

  #current(): ShipmentState {
    this.#state().now();
    return this.#state().shipment(this.trackingNumber);
  }

  #change(run: (shipment: ShipmentState, state: FakeState, nowMs: number) => void): this {
    const shipment = this.#current();
    shipment.isScripted = true;
    run(shipment, this.#state(), this.#state().now());
    return this;
  }
}

/**
 * Creates a tracking service in memory: every endpoint of the table, with its rules, limits and errors.
 * Two fakes share nothing. It imports no HTTP client and no test runner.
 *
 * @param options - see `FakeTrackingServiceOptions`; every one may be left out
 * @returns the fake
 * @throws ConfigurationError when an option makes no sense
 * @example
 * const fake = createFakeTrackingService();
 * const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
 */
export function createFakeTrackingService(options: FakeTrackingServiceOptions = {}): FakeTrackingService {
  const resolved = resolveOptions(options);
  let state = new FakeState(resolved);
  const basePath = resolved.baseUrl.pathname.replace(/\/+$/, '');
  const serveRaw = (raw: RawRequest) => serve(state, raw);
  const shipment = (trackingNumber: string) => new FakeShipment(() => state, trackingNumber);
  return {
    baseUrl: resolved.baseUrl.origin + basePath,
    apiKey: options.apiKeys?.[0] ?? 'test-api-key',
    fetch: createFetch(serveRaw, basePath),
    serve: serveRaw,
    get requests() {
      return state.requests;
    },
    get trackers() {
      state.now();
      return state.trackers.all().map(trackerView);
    },
    get couriers() {
      return state.couriers;
    },
    get webhooks() {
      return state.webhooks;
    },
    listen: (listenOptions) => listen(serveRaw, basePath, listenOptions),
    shipment,
    play(trackingNumber, name, { speed = resolved.speed } = {}) {
      checkOneOf('name', name, PLAY_NAMES);
      checkSpeed(speed);
      const played = shipment(trackingNumber);
      state.play(state.shipment(trackingNumber), name, speed);
      return played;
    },
    fail: (endpoint, failure) => state.failures.plan(endpoint, failure),
    reset() {
      state = new FakeState(resolved);
    },
  };
}

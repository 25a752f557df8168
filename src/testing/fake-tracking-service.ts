import { checkOneOf, checkOptions, refuseOption } from '../common/option-checks.ts';
import type { EndpointName } from '../endpoints.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { trackingNumber as trackingNumberRule } from '../schemas/identifier.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { ProofOfDelivery } from '../schemas/webhook.ts';
import { sortEvents } from '../webhooks/events.ts';
import { control } from './control.ts';
import {
  type FakeTrackingServiceOptions,
  type RecordedRequest,
  resolveOptions,
  speedOption,
} from './options.ts';
import type { FakeCourier } from './service/couriers.ts';
import type { Failure, PlannedFailure } from './service/failures.ts';
import type { FakeRequest, Outcome } from './service/http.ts';
import { serve } from './service/serve.ts';
import { FakeState, type Target } from './service/state.ts';
import { buildTrackerRecord, isTracked, type TrackerState } from './service/trackers.ts';
import { PLAY_NAMES, type PlayName } from './shipments/scenarios.ts';
import type { EventInput, ShipmentInput } from './shipments/shipment.ts';
import { createFetch, type FakeServer, type FetchLike, type ListenOptions, listen } from './transports.ts';
import type { WebhookQueue } from './webhooks/queue.ts';

/** A tracking service in memory, for tests; see `createFakeTrackingService`. */
export interface FakeTrackingService {
  /** Base URL to give to a client together with `fetch`; any other one whose path ends with `v1` works too. */
  readonly baseUrl: string;
  /** A key that the fake accepts. */
  readonly apiKey: string;
  /** A `fetch` that goes straight into the fake, without a network. */
  readonly fetch: FetchLike;
  /** Carries out one request of any transport; `fetch`, `listen` and the MSW handlers are built on it. */
  readonly serve: (request: FakeRequest) => Promise<Outcome>;
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
   * Returns the verbs of a test about all trackers of one tracking number, or about one tracker.
   *
   * @param of - a tracking number in any case, which may have no tracker yet; or the id of one tracker
   * @returns the shipment
   * @throws ConfigurationError when it is no tracking number, or there is no such tracker
   * @example fake.shipment({ trackerId: tracker.trackerId }).deliver()
   */
  shipment(of: string | { readonly trackerId: string }): FakeShipment;
  /**
   * Plays a scenario: events happen to a shipment one after the other, on the fake's clock.
   *
   * @param trackingNumber - whose shipment
   * @param name - which scenario
   * @param options - `speed`: how many times faster than real time, at least 1; default the fake's `speed`; `Infinity` for at once
   * @returns the shipment
   * @throws ConfigurationError for an unknown scenario or a speed below 1
   */
  play(trackingNumber: string, name: PlayName, options?: { readonly speed?: number }): FakeShipment;
  /**
   * Makes the next requests fail, over every transport alike.
   *
   * @param endpoint - an endpoint of the table, or `*` for all
   * @param failure - what goes wrong, and how often (default once)
   * @returns how often it will still happen, and a way to end it
   * @throws ConfigurationError for an unknown endpoint or an invalid failure
   * @example
   * fake.fail('trackers.create', { status: 429, retryAfter: 1 });
   * fake.fail('*', { kind: 'reset', times: 2 });
   */
  fail(endpoint: EndpointName | '*', failure: Failure): PlannedFailure;
  /** Forgets everything, and ids start anew. Servers go on listening. */
  reset(): void;
}

/**
 * The verbs of a test about one tracking number, or about one tracker of it. They return the shipment, so they chain.
 *
 * Every tracker of the number that is tracked knows at once what a verb adds; a tracker that is created later knows it
 * `resultsDelayMs` after its creation. A tracker that has stopped learns nothing new.
 *
 * @example
 * fake.shipment('RR123456785CN')
 *   .addEvent({ statusMilestone: 'in_transit', location: 'Beijing' })
 *   .deliver()
 *   .stopTracking();
 */
export class FakeShipment {
  readonly #getState: () => FakeState;
  readonly #trackerId: string | undefined;
  /** In upper case. */
  readonly trackingNumber: string;

  /** @internal */
  constructor(getState: () => FakeState, of: string | { readonly trackerId: string }) {
    this.#getState = getState;
    this.#trackerId = typeof of === 'string' ? undefined : of?.trackerId;
    const trackingNumber = typeof of === 'string' ? of : this.#findTracker(this.#trackerId).trackingNumber;
    if (!trackingNumberRule.safeParse(trackingNumber).success)
      refuseOption('trackingNumber', 'a tracking number', trackingNumber);
    this.trackingNumber = trackingNumber.toUpperCase();
  }

  /** What couriers reported so far, oldest first; of one tracker, what it knows. */
  get events(): readonly TrackingEvent[] {
    const { parcel, tracker } = this.#getTarget();
    return sortEvents((tracker?.shipment ?? parcel).events);
  }

  /** False once tracking has stopped, for every tracker of the number. */
  get isTracked(): boolean {
    const target = this.#getTarget();
    const trackers = this.#getState().findTrackers(target);
    const nowMs = this.#getState().now();
    if (trackers.length === 0) return !target.parcel.stopsFirstTracker;
    return trackers.some((tracker) => isTracked(tracker, nowMs));
  }

  /**
   * Adds events, which every tracker of the number pushes as one webhook, unless `eventsPerPush` splits it.
   *
   * @param events - what they say, in any order; default one event in transit. Id, time, order and status are filled in.
   * @returns the shipment
   * @example shipment.addEvent({ statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-04T17:12:57' })
   */
  addEvent(...events: readonly EventInput[]): this {
    const inputs = events.length === 0 ? [{}] : events;
    return this.#change((state, target, nowMs) => state.addEvents(target, inputs, nowMs));
  }

  /**
   * Adds an event that says delivered. Tracking goes on until `stopTracking`, or stops by itself 14 days later.
   *
   * @param event - what else it says; default nothing
   * @returns the shipment
   */
  deliver(event: EventInput = {}): this {
    return this.addEvent({ statusMilestone: 'delivered', ...event });
  }

  /**
   * Stops tracking: `isTracked` turns false for all trackers, and they learn nothing new. Before there is a tracker, it stops
   * the first one as soon as that has its first results; a later tracker of the number is tracked.
   *
   * @returns the shipment
   */
  stopTracking(): this {
    return this.#change((state, target, nowMs) => state.stopTracking(target, nowMs));
  }

  /**
   * Sets fields of the shipment, over what events and trackers say.
   *
   * @param fields - the fields to set; others stay
   * @returns the shipment
   * @example shipment.update({ delivery: { aiPredictiveDeliveryDate: '2026-03-09' } })
   */
  update(fields: ShipmentInput): this {
    return this.#change((state, target, nowMs) => state.setFields(target, fields, nowMs));
  }

  /**
   * Queues a proof of delivery, topic `tracking/pod`, for every tracker of the number that is tracked.
   *
   * @param proof - what it says; default a signature to download
   * @returns the shipment
   */
  proveDelivery(proof: ProofOfDelivery['data'] = {}): this {
    return this.#change((state, target, nowMs) => state.pushProof(target, proof, nowMs));
  }

  #findTracker(trackerId: unknown): TrackerState {
    const tracker = this.#getState().trackers.find(trackerId);
    return tracker ?? refuseOption('trackerId', 'the id of a tracker of this fake', trackerId);
  }

  #getTarget(): Target {
    const state = this.#getState();
    // Lets everything happen that is due.
    state.now();
    return {
      parcel: state.getParcel(this.trackingNumber),
      tracker: this.#trackerId === undefined ? undefined : this.#findTracker(this.#trackerId),
    };
  }

  #change(run: (state: FakeState, target: Target, nowMs: number) => void): this {
    const target = this.#getTarget();
    target.parcel.hasScenario = true;
    run(this.#getState(), target, this.#getState().now());
    return this;
  }
}

/**
 * Creates a tracking service in memory: every endpoint of the table, with its rules, limits and errors.
 * Two fakes share nothing. It imports no HTTP client and no test runner.
 *
 * Tracking stops by itself 14 days after a delivery, and after 90 days without an event.
 *
 * @param options - see `FakeTrackingServiceOptions`; every one may be left out
 * @returns the fake
 * @throws ConfigurationError for an invalid option
 * @example
 * const fake = createFakeTrackingService();
 * const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
 */
export function createFakeTrackingService(options: FakeTrackingServiceOptions = {}): FakeTrackingService {
  const resolved = resolveOptions(options);
  let state = new FakeState(resolved);
  const basePath = resolved.baseUrl.pathname.replace(/\/+$/, '');
  const serveRequest = (request: FakeRequest) => serve(state, request);
  const shipment = (of: string | { readonly trackerId: string }) => new FakeShipment(() => state, of);
  const fake: FakeTrackingService = {
    baseUrl: resolved.baseUrl.origin + basePath,
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
    listen({ control: isControlled = false, ...listenOptions } = {}) {
      const serveControlled = async (request: FakeRequest): Promise<Outcome> => {
        const response = control(fake, request, resolved.apiKeys);
        return response === undefined ? serveRequest(request) : { kind: 'response', response };
      };
      return listen(isControlled ? serveControlled : serveRequest, basePath, listenOptions);
    },
    shipment,
    play(trackingNumber, name, { speed = resolved.speed } = {}) {
      checkOneOf('name', name, PLAY_NAMES);
      checkOptions(speedOption, speed, 'speed');
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

// Specification: service.md 1, 2, 4, 5, 6, 7, 8; public contract
import { checkOneOf, checkOptions, refuseOption } from '../common/option-checks.ts';
import type { EndpointName } from '../endpoints.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import { trackingNumber as trackingNumberRule } from '../schemas/identifier.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { ProofOfDelivery } from '../schemas/webhook.ts';
import { sortEvents } from '../webhooks/events.ts';
import { controlReply } from './control.ts';
import {
  type FakeTrackingServiceOptions,
  type RecordedRequest,
  resolveOptions,
  speedOption,
} from './options.ts';
import type { FakeCourier } from './service/couriers.ts';
import type { Failure, PlannedFailure } from './service/failures.ts';
import type { Outcome, RawRequest } from './service/http.ts';
import { serve } from './service/serve.ts';
import { type Addressee, FakeState } from './service/state.ts';
import { isTracked, type TrackerState, trackerView } from './service/trackers.ts';
import { PLAY_NAMES, type PlayName } from './shipments/plays.ts';
import type { EventInput, ShipmentInput } from './shipments/shipment.ts';
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
   * The verbs of a test about the shipments of one tracking number, or about that of one tracker.
   *
   * @param of - a tracking number in any case, of which a tracker need not exist yet; or the id of one tracker
   * @returns what speaks to the shipments of all trackers of the number, or to that one
   * @throws ConfigurationError when it is no tracking number, or there is no such tracker
   * @example fake.shipment({ trackerId: tracker.trackerId }).deliver()
   */
  shipment(of: string | { readonly trackerId: string }): FakeShipment;
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
 * The verbs of a test about one tracking number, or about one tracker of it; each returns the shipment, so they chain.
 *
 * Every tracker of the number that is tracked knows what a verb adds at once. Trackers created later have it
 * `resultsDelayMs` after their creation. A tracker that has stopped learns nothing new.
 *
 * @example
 * fake.shipment('RR123456785CN')
 *   .addEvent({ statusMilestone: 'in_transit', location: 'Beijing' })
 *   .deliver()
 *   .stopTracking();
 */
export class FakeShipment {
  readonly #state: () => FakeState;
  readonly #trackerId: string | undefined;
  /** In upper case. */
  readonly trackingNumber: string;

  /** @internal */
  constructor(state: () => FakeState, of: string | { readonly trackerId: string }) {
    this.#state = state;
    this.#trackerId = typeof of === 'string' ? undefined : of?.trackerId;
    const trackingNumber = typeof of === 'string' ? of : this.#trackerOf(this.#trackerId).trackingNumber;
    if (!trackingNumberRule.safeParse(trackingNumber).success)
      refuseOption('trackingNumber', 'a tracking number as in section 2.1', trackingNumber);
    this.trackingNumber = trackingNumber.toUpperCase();
  }

  /** What couriers reported so far, oldest first; of one tracker, what it knows. */
  get events(): readonly TrackingEvent[] {
    const { number, only } = this.#addressee();
    return sortEvents((only?.shipment ?? number).events);
  }

  /** False once tracking has stopped, for every tracker of the number. */
  get isTracked(): boolean {
    const whom = this.#addressee();
    const trackers = this.#state().trackersOf(whom);
    const nowMs = this.#state().now();
    if (trackers.length === 0) return !whom.number.stopsFirstTracker;
    return trackers.some((tracker) => isTracked(tracker, nowMs));
  }

  /**
   * Adds events, which every tracker of the number pushes as one webhook, unless `eventsPerPush` splits it.
   *
   * @param events - what to say, in any order; id, time, order and status are filled in where left out
   * @example shipment.addEvent({ statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-04T17:12:57' })
   */
  addEvent(...events: readonly EventInput[]): this {
    const inputs = events.length === 0 ? [{}] : events;
    return this.#change((state, whom, nowMs) => state.addEvents(whom, inputs, nowMs));
  }

  /**
   * Adds an event that says delivered. Tracking goes on until `stopTracking`, or stops by itself 14 days later.
   *
   * @param event - what else it says
   */
  deliver(event: EventInput = {}): this {
    return this.addEvent({ statusMilestone: 'delivered', ...event });
  }

  /**
   * The service gives the shipment up: `isTracked` turns false for all its trackers, and they learn nothing new. Before there is a
   * tracker, it stops the first one as soon as that has its first results; a later tracker of the number is tracked.
   */
  stopTracking(): this {
    return this.#change((state, whom, nowMs) => state.stopTracking(whom, nowMs));
  }

  /**
   * Sets fields of the shipment, over what events and trackers say.
   *
   * @param fields - the fields to set; others stay
   * @example shipment.update({ delivery: { aiPredictiveDeliveryDate: '2026-03-09' } })
   */
  update(fields: ShipmentInput): this {
    return this.#change((state, whom, nowMs) => state.setFields(whom, fields, nowMs));
  }

  /**
   * Queues a proof of delivery, topic `tracking/pod`, for every tracker of the number that is tracked.
   *
   * @param proof - what it says; a signature to download where left out
   */
  proveDelivery(proof: ProofOfDelivery['data'] = {}): this {
    return this.#change((state, whom, nowMs) => state.pushProof(whom, proof, nowMs));
  }

  #trackerOf(trackerId: unknown): TrackerState {
    const tracker = this.#state().trackers.find(trackerId);
    return tracker ?? refuseOption('trackerId', 'the id of a tracker of this fake', trackerId);
  }

  #addressee(): Addressee {
    this.#state().now();
    return {
      number: this.#state().number(this.trackingNumber),
      only: this.#trackerId === undefined ? undefined : this.#trackerOf(this.#trackerId),
    };
  }

  #change(run: (state: FakeState, whom: Addressee, nowMs: number) => void): this {
    const whom = this.#addressee();
    whom.number.isScripted = true;
    run(this.#state(), whom, this.#state().now());
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
  const shipment = (of: string | { readonly trackerId: string }) => new FakeShipment(() => state, of);
  const fake: FakeTrackingService = {
    baseUrl: resolved.baseUrl.origin + basePath,
    apiKey: options.apiKeys?.[0] ?? 'test-api-key',
    fetch: createFetch(serveRaw, basePath),
    serve: serveRaw,
    get requests() {
      return state.requests;
    },
    get trackers() {
      const nowMs = state.now();
      return state.trackers.all().map((tracker) => trackerView(tracker, nowMs));
    },
    get couriers() {
      return state.couriers;
    },
    get webhooks() {
      return state.webhooks;
    },
    listen({ control = false, ...listenOptions } = {}) {
      const serveControlled = async (raw: RawRequest): Promise<Outcome> => {
        const reply = controlReply(fake, raw);
        return reply === undefined ? serveRaw(raw) : { kind: 'answer', reply };
      };
      return listen(control ? serveControlled : serveRaw, basePath, listenOptions);
    },
    shipment,
    play(trackingNumber, name, { speed = resolved.speed } = {}) {
      checkOneOf('name', name, PLAY_NAMES);
      checkOptions(speedOption, speed, 'speed');
      const played = shipment(trackingNumber);
      state.play(state.number(trackingNumber), name, speed);
      return played;
    },
    fail: (endpoint, failure) => state.failures.plan(endpoint, failure),
    reset() {
      state = new FakeState(resolved);
    },
  };
  return fake;
}

import { checkOptions, refuseOption } from '../../common/check-options.ts';
import { quoteValue } from '../../common/messages.ts';
import { sortEvents } from '../../events/order.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import { trackingNumber as trackingNumberRule } from '../../schemas/tracker.ts';
import type { Shipment } from '../../schemas/tracking.ts';
import type { ProofOfDelivery } from '../../schemas/webhook.ts';
import type { FakeState, Target } from '../service/state.ts';
import { isTracked, type TrackerState } from '../service/trackers.ts';
import type { EventInput } from './shipment.ts';

/** All trackers of a tracking number, or one tracker. */
export type ShipmentKey = string | { readonly trackerId: string };

/**
 * Lets a test change all trackers of one number, or one of them. Methods return the shipment, so calls can be chained.
 *
 * Trackers that are still tracked show at once what a method adds; a tracker that is created later shows it
 * `resultsDelayMs` after its creation. A tracker that has stopped shows nothing new.
 *
 * @example fake.shipment('RR123456785CN').addEvent({ location: 'Beijing' }).deliver().stopTracking();
 */
export class FakeShipment {
  readonly #getState: () => FakeState;
  readonly #trackerId: string | undefined;
  /** In upper case. */
  readonly trackingNumber: string;

  /** @internal */
  constructor(getState: () => FakeState, key: ShipmentKey) {
    this.#getState = getState;
    this.#trackerId = typeof key === 'string' ? undefined : key?.trackerId;
    const trackingNumber = typeof key === 'string' ? key : this.#findTracker(this.#trackerId).trackingNumber;
    checkOptions(trackingNumberRule, trackingNumber, 'trackingNumber');
    this.trackingNumber = trackingNumber.toUpperCase();
  }

  /** The events that couriers reported, or that the chosen tracker has discovered; oldest first. */
  get events(): readonly TrackingEvent[] {
    const { parcel, tracker } = this.#getTarget();
    return sortEvents((tracker?.shipment ?? parcel).events);
  }

  /** False once tracking has stopped for every tracker of the number, or for the chosen tracker. */
  get isTracked(): boolean {
    const target = this.#getTarget();
    const trackers = this.#getState().findTrackers(target);
    const nowMs = this.#getState().now();
    if (trackers.length === 0) return !target.parcel.stopsNextTracker;
    return trackers.some((tracker) => isTracked(tracker, nowMs));
  }

  /**
   * Adds events. Every tracker of the number, or only the chosen tracker, pushes each of them as a webhook.
   *
   * @param events - in any order; default: one event in transit. A missing id, time, order or status is filled in.
   * @example shipment.addEvent({ statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-04T17:12:57' })
   */
  addEvent(...events: readonly EventInput[]): this {
    const inputs = events.length === 0 ? [{}] : events;
    return this.#change((state, target, nowMs) => state.addEvents(target, inputs, nowMs));
  }

  /**
   * Adds an event with milestone `delivered`. Tracking goes on until `stopTracking`, or stops by itself 14 days later.
   *
   * @param event - more fields of the event; default none
   */
  deliver(event: EventInput = {}): this {
    return this.addEvent({ statusMilestone: 'delivered', ...event });
  }

  /**
   * Stops tracking for every tracker of the number, or only for the chosen tracker: `isTracked` turns false, and no new events
   * come. If the number has no tracker yet, the first tracker stops once it has its first results; later trackers are tracked.
   */
  stopTracking(): this {
    return this.#change((state, target, nowMs) => state.stopTracking(target, nowMs));
  }

  /**
   * Sets fields of the shipment; they replace the values that come from events and trackers.
   *
   * @param fields - the fields to set; others stay
   * @throws ConfigurationError if tracking has stopped for every tracker of the number, or for the chosen tracker
   * @example shipment.update({ delivery: { aiPredictiveDeliveryDate: { to: '2026-03-09' } } })
   */
  update(fields: Partial<Shipment>): this {
    return this.#change((state, target, nowMs) => state.setFields(target, fields, nowMs));
  }

  /**
   * Queues a proof of delivery (topic `tracking/pod`) for every tracker of the number, or only for the chosen tracker. A tracker
   * that has stopped gets none.
   *
   * @param proof - its fields; default: a PDF to download. If you set the `type` of the `content`, the fake adds a text or a
   * `downloadUrl`
   * @example shipment.proveDelivery({ content: { type: 'image/png' } })
   */
  proveDelivery(proof: ProofOfDelivery['data'] = {}): this {
    return this.#change((state, target, nowMs) => state.pushProof(target, proof, nowMs));
  }

  #findTracker(trackerId: unknown): TrackerState {
    const tracker = this.#getState().trackers.find(trackerId);
    return tracker ?? refuseOption('trackerId', 'the id of a tracker of this fake', trackerId, quoteValue);
  }

  #getTarget(): Target {
    const state = this.#getState();
    // Reading the clock runs all actions that are due.
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

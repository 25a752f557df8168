import { kindOf } from '../../common/validation.ts';
import { ConfigurationError } from '../../errors.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import { trackingNumber as trackingNumberRule } from '../../schemas/identifier.ts';
import type { ProofOfDelivery } from '../../schemas/webhook.ts';
import type { World } from '../world.ts';
import type { EventInput } from './event-defaults.ts';
import type { ShipmentInput, ShipmentState } from './shipment-state.ts';

/**
 * The verbs of a test about one tracking number; each returns the shipment, so they chain.
 *
 * What a verb tells is known to every tracker of the number at once. Trackers created later have it
 * `resultsDelayMs` after their creation.
 *
 * @example
 * fake.shipment('RR123456785CN')
 *   .addEvent({ statusMilestone: 'in_transit', location: 'Beijing' })
 *   .deliver()
 *   .stopTracking();
 */
export class FakeShipment {
  readonly #world: () => World;
  /** In upper case. */
  readonly trackingNumber: string;

  /** @internal */
  constructor(world: () => World, trackingNumber: string) {
    if (!trackingNumberRule.safeParse(trackingNumber).success)
      throw new ConfigurationError(
        `Expected \`trackingNumber\` to be a tracking number as in section 2.1, got ${kindOf(trackingNumber)}`,
      );
    this.#world = world;
    this.trackingNumber = trackingNumber.toUpperCase();
  }

  /** What happened so far, oldest first. */
  get events(): readonly TrackingEvent[] {
    const world = this.#world();
    world.now();
    return [...world.shipment(this.trackingNumber).events];
  }

  /** False once the service has given the shipment up. */
  get isTracked(): boolean {
    const world = this.#world();
    world.now();
    return !world.shipment(this.trackingNumber).isStopped;
  }

  /**
   * Adds events, which every tracker of the number pushes as one webhook.
   *
   * @param events - what to say, oldest first; id, time, order and status are filled in where left out
   * @example shipment.addEvent({ statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-04T17:12:57' })
   */
  addEvent(...events: readonly EventInput[]): this {
    return this.#change((shipment, world, nowMs) => {
      world.addEvents(shipment, events.length === 0 ? [{}] : events, nowMs);
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
    return this.#change((shipment, world, nowMs) => world.stopTracking(shipment, nowMs));
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
   * @specification public contract
   */
  proveDelivery(proof: ProofOfDelivery['data'] = {}): this {
    return this.#change((shipment, world, nowMs) => {
      const courier = shipment.latestEvent?.courierCode ?? 'us-post';
      const downloadUrl = `https://tracking.test/proofs/${this.trackingNumber}.pdf`;
      const content = { type: 'signature', text: null, downloadUrl };
      world.pushProof(shipment, { status: 'found', courier, content, ...proof }, nowMs);
    });
  }

  #change(run: (shipment: ShipmentState, world: World, nowMs: number) => void): this {
    const world = this.#world();
    const nowMs = world.now();
    const shipment = world.shipment(this.trackingNumber);
    shipment.isScripted = true;
    run(shipment, world, nowMs);
    return this;
  }
}

// Specification: service.md 2.3; public contract, "Records"
import type { STATUS_MILESTONES, StatusCategory, StatusCode, TrackingEvent } from '../../schemas/event.ts';
import type { PerCallTracking, Shipment, Statistics } from '../../schemas/tracking.ts';
import type { ProofOfDelivery } from '../../schemas/webhook.ts';
import { sortEvents } from '../../webhooks/events.ts';
import type { SeededIds } from '../service/seeded.ts';

/** An event without the parts that belong to one shipment. */
export type EventInput = { readonly [Field in keyof TrackingEvent]?: TrackingEvent[Field] };

/** Fields of a shipment that a test may set. */
export type ShipmentInput = { readonly [Field in keyof Shipment]?: Shipment[Field] };

type StatusDefaults = readonly [StatusCode | null, StatusCategory | null, status: string];

/** What an event of each milestone says unless the test says otherwise; the status is what a courier would write. */
const STATUS_DEFAULTS: Readonly<Record<(typeof STATUS_MILESTONES)[number], StatusDefaults>> = {
  pending: [null, null, 'Waiting for the courier'],
  info_received: ['data_order_created', 'data', 'Shipping label created'],
  in_transit: ['transit_handover', 'transit', 'In transit'],
  out_for_delivery: ['delivery_out_for_delivery', 'delivery', 'Out for delivery'],
  failed_attempt: ['delivery_attempted', 'delivery', 'Delivery attempted, nobody at home'],
  available_for_pickup: ['delivery_available_for_pickup', 'delivery', 'Ready for collection'],
  delivered: ['delivery_delivered', 'delivery', 'Delivered'],
  exception: ['delivery_exception', 'exception', 'Delivery exception'],
};

/** What an event says about its status, filled up from its milestone (default `in_transit`). */
function statusOf(input: EventInput): EventInput {
  const statusMilestone = input.statusMilestone ?? 'in_transit';
  const known = new Map<string, StatusDefaults>(Object.entries(STATUS_DEFAULTS));
  const [statusCode, statusCategory, status] = known.get(statusMilestone) ?? STATUS_DEFAULTS.in_transit;
  return { statusCode, statusCategory, status, statusMilestone };
}

/** A shipment: what its tracker has gathered of it. */
export class ShipmentState {
  readonly trackingNumber: string;
  readonly shipmentId: string;
  /** In the order they became known. */
  readonly events: TrackingEvent[] = [];
  /** What a test set by hand; it wins over what events and trackers say. */
  fields: ShipmentInput = {};

  constructor(trackingNumber: string, shipmentId: string) {
    this.trackingNumber = trackingNumber;
    this.shipmentId = shipmentId;
  }

  get courierCodes(): string[] {
    return [...new Set(this.events.flatMap((event) => event.courierCode ?? []))];
  }

  add(input: EventInput, ids: SeededIds, atMs: number): TrackingEvent {
    const courierCode = input.courierCode ?? this.events.at(-1)?.courierCode ?? null;
    const event: TrackingEvent = {
      eventId: input.eventId ?? ids.next('event'),
      trackingNumber: this.trackingNumber,
      eventTrackingNumber: this.trackingNumber,
      // As the service writes UTC: whole seconds.
      occurrenceDatetime: new Date(atMs).toISOString().replace(/\.\d{3}Z$/, 'Z'),
      order: this.events.length,
      location: null,
      sourceCode: courierCode,
      courierCode,
      ...statusOf(input),
      ...input,
    };
    this.events.push(event);
    return event;
  }
}

/** What couriers know of a tracking number: every tracker of it gathers a shipment of its own from this. */
export class NumberState extends ShipmentState {
  /** True once somebody decided what happens to it, so the play of the options leaves it alone. */
  isScripted = false;
  /** True once tracking was told to stop before anything was tracked: that waits for the first tracker. */
  stopsFirstTracker = false;
  readonly #ids: SeededIds;
  readonly #shipmentKeys: string[] = [];
  readonly #madeIds = new Set<string>();

  constructor(trackingNumber: string, ids: SeededIds) {
    super(trackingNumber, ids.next('shipment'));
    this.#ids = ids;
  }

  override add(input: EventInput, ids: SeededIds, atMs: number): TrackingEvent {
    const event = super.add(input, ids, atMs);
    if (input.eventId === undefined) this.#madeIds.add(event.eventId);
    return event;
  }

  /** Finds the shipment of this number that a caller means, as one of those that were meant before or a new one. */
  shipmentFor(key: string): { shipment: ShipmentState; gather: (event: TrackingEvent) => TrackingEvent } {
    if (!this.#shipmentKeys.includes(key)) this.#shipmentKeys.push(key);
    const place = this.#shipmentKeys.indexOf(key);
    const idOf = (id: string) => (place === 0 ? id : this.#ids.of(id, place));
    return {
      shipment: new ShipmentState(this.trackingNumber, idOf(this.shipmentId)),
      gather: (event) =>
        this.#madeIds.has(event.eventId) ? { ...event, eventId: idOf(event.eventId) } : event,
    };
  }
}

/** Where a caller said that a shipment comes from and goes to. */
type Places = Pick<Shipment, 'originCountryCode' | 'destinationCountryCode'>;

/** The shipment as of its newest event; add-ons are absent unless a test set them. */
function shipmentView(state: ShipmentState, places: Places, latest: TrackingEvent | undefined): Shipment {
  return {
    shipmentId: state.shipmentId,
    statusCode: latest?.statusCode ?? null,
    statusCategory: latest?.statusCategory ?? null,
    statusMilestone: latest?.statusMilestone ?? 'pending',
    originCountryCode: places.originCountryCode,
    destinationCountryCode: places.destinationCountryCode,
    trackingNumbers: [{ tn: state.trackingNumber }],
    recipient: null,
    ...state.fields,
    delivery: {
      estimatedDeliveryDate: null,
      courierEstimatedDeliveryDate: null,
      service: null,
      ...state.fields.delivery,
    },
  };
}

function statisticsView(events: readonly TrackingEvent[]): Statistics {
  const first = (milestone: string): string | null =>
    events.find((event) => event.statusMilestone === milestone)?.occurrenceDatetime ?? null;
  return {
    timestamps: {
      infoReceivedDatetime: first('info_received'),
      inTransitDatetime: first('in_transit'),
      outForDeliveryDatetime: first('out_for_delivery'),
      failedAttemptDatetime: first('failed_attempt'),
      availableForPickupDatetime: first('available_for_pickup'),
      exceptionDatetime: first('exception'),
      deliveredDatetime: first('delivered'),
    },
  };
}

/** Results without a tracker: whatever order events became known in, the newest by time is first and decides. */
export function resultsView(state: ShipmentState, places: Places, events = state.events): PerCallTracking {
  const oldestFirst = sortEvents(events);
  return {
    shipment: shipmentView(state, places, oldestFirst.at(-1)),
    events: oldestFirst.toReversed(),
    statistics: statisticsView(oldestFirst),
  };
}

/** The proof of delivery of a shipment: a signature to download. */
export function signatureOf({ trackingNumber, events }: ShipmentState): ProofOfDelivery['data'] {
  const downloadUrl = `https://tracking.test/proofs/${trackingNumber}.pdf`;
  const content = { type: 'signature', text: null, downloadUrl };
  return { status: 'found', courier: events.at(-1)?.courierCode ?? 'us-post', content };
}

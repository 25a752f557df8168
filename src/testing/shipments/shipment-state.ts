import type { TrackingEvent } from '../../schemas/event.ts';
import type { Shipment } from '../../schemas/tracking.ts';
import type { SeededIds } from '../service/seeded.ts';
import { type EventInput, statusOf, utcDatetime } from './event-defaults.ts';

/** Fields of a shipment that a test may set. */
export type ShipmentInput = { readonly [Field in keyof Shipment]?: Shipment[Field] };

/** What couriers know of one tracking number, whoever tracks it. */
export class ShipmentState {
  readonly trackingNumber: string;
  readonly shipmentId: string;
  /** Oldest first. */
  readonly events: TrackingEvent[] = [];
  /** True once the service has given it up, for every tracker of the number. */
  isStopped = false;
  /** True once somebody decided what happens to it, so the play of the options leaves it alone. */
  isScripted = false;
  /** What a test set by hand; it wins over what events and trackers say. */
  fields: ShipmentInput = {};

  constructor(trackingNumber: string, ids: SeededIds) {
    this.trackingNumber = trackingNumber;
    this.shipmentId = ids.next('shipment');
  }

  /** The event that says where the shipment is now. */
  get latestEvent(): TrackingEvent | undefined {
    return this.events.at(-1);
  }

  /** The couriers that told of it, each once. */
  get courierCodes(): string[] {
    return [...new Set(this.events.flatMap((event) => event.courierCode ?? []))];
  }

  /** Adds an event, filled up with defaults, and returns it. */
  add(input: EventInput, ids: SeededIds, atMs: number): TrackingEvent {
    const courierCode = input.courierCode ?? this.latestEvent?.courierCode ?? null;
    const event: TrackingEvent = {
      eventId: input.eventId ?? ids.next('event'),
      trackingNumber: this.trackingNumber,
      eventTrackingNumber: this.trackingNumber,
      occurrenceDatetime: utcDatetime(atMs),
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

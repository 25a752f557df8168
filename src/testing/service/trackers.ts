// Specification: service.md 2.2, 2.4; public contract, "Records"

import type { CourierCodes } from '../../schemas/courier.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import type { SearchBy } from '../../schemas/identifier.ts';
import type { Tracker, TrackerRequest, TrackerUpdateRequest } from '../../schemas/tracker.ts';
import type { Tracking } from '../../schemas/tracking.ts';
import { resultsView, type ShipmentState } from '../shipments/shipment.ts';
import { rejection } from './http.ts';
import { dayOf, toAlpha2 } from './input.ts';

/** A list of courier codes in the form they are compared: each once, in a fixed order. */
function courierList(codes: CourierCodes | undefined): string[] {
  const list = typeof codes === 'string' ? [codes] : (codes ?? []);
  return [...new Set(list.map((code) => code.trim().toLowerCase()))].sort();
}

function countryOf(code: string | undefined): string | null {
  return code === undefined ? null : (toAlpha2(code) ?? null);
}

/** Brings what a request says of couriers and places into the form it is kept and compared in. */
export function toHints(input: Omit<TrackerUpdateRequest, 'isSubscribed'>) {
  return {
    courierCodes: courierList(input.courierCode),
    originCountryCode: countryOf(input.originCountryCode),
    destinationCountryCode: countryOf(input.destinationCountryCode),
    destinationPostCode: input.destinationPostCode ?? null,
    /** Day precision: the day alone. */
    shippingDay: input.shippingDate === undefined ? null : dayOf(input.shippingDate),
  };
}

/** What helps to find a shipment. */
export type Hints = ReturnType<typeof toHints>;

/** Brings a creation request into the form it is kept and compared in. */
export function toPayload(input: TrackerRequest) {
  const restriction = input.settings?.restrictTrackingToCourierCode ?? null;
  const isList = restriction !== null && typeof restriction !== 'boolean';
  return {
    trackingNumber: input.trackingNumber.toUpperCase(),
    clientTrackerId: input.clientTrackerId || null,
    shipmentReference: input.shipmentReference ?? null,
    ...toHints(input),
    courierName: input.courierName ?? null,
    trackingUrl: input.trackingUrl ?? null,
    /** `true`, `false` or the codes, as one comparable text. */
    restriction: isList ? courierList(restriction).join(',') : (restriction?.toString() ?? null),
  };
}

/** What of a creation request is kept. */
export type TrackerPayload = ReturnType<typeof toPayload>;

/** A tracker as the fake keeps it. */
export interface TrackerState extends TrackerPayload {
  readonly trackerId: string;
  readonly createdAtMs: number;
  readonly shipment: ShipmentState;
  /** Makes an event of its shipment from one of its number. */
  readonly gather: (event: TrackingEvent) => TrackingEvent;
  /** False once archived. */
  isSubscribed: boolean;
  /** When tracking stops, or has stopped. */
  trackedUntilMs: number;
  /** True once the service asked couriers for it; before, there are no results. */
  isFetched: boolean;
}

/** What a webhook says of a tracker: no `isTracked` and no `courierCode`. */
export function webhookTrackerView(tracker: TrackerState): Omit<Tracker, 'isTracked' | 'courierCode'> {
  return {
    trackerId: tracker.trackerId,
    trackingNumber: tracker.trackingNumber,
    shipmentReference: tracker.shipmentReference,
    clientTrackerId: tracker.clientTrackerId,
    isSubscribed: tracker.isSubscribed,
    createdAt: new Date(tracker.createdAtMs).toISOString(),
  };
}

export function isTracked({ trackedUntilMs }: TrackerState, nowMs: number): boolean {
  return nowMs < trackedUntilMs;
}

export function trackerView(tracker: TrackerState, nowMs: number): Tracker {
  return {
    ...webhookTrackerView(tracker),
    isTracked: isTracked(tracker, nowMs),
    courierCode: [...tracker.courierCodes],
  };
}

export function trackingView(tracker: TrackerState, nowMs: number): Tracking {
  return { tracker: trackerView(tracker, nowMs), ...resultsView(tracker.shipment, tracker) };
}

/** What tells the shipments of one number apart. */
export const SHIPMENT_FIELDS = ['courierCodes', 'originCountryCode', 'destinationCountryCode', 'shippingDay'];
/** What must match for a tracker to be reused. */
const MATCHED_FIELDS = [
  ...SHIPMENT_FIELDS,
  'destinationPostCode',
  'shipmentReference',
  'courierName',
  'trackingUrl',
  'restriction',
];

/** True unless the tracker is restricted to other couriers; an event without a courier is nobody else's. */
export function isOfItsCourier(
  { restriction, courierCodes }: TrackerPayload,
  { courierCode }: Pick<TrackingEvent, 'courierCode'>,
): boolean {
  if (restriction === null || restriction === 'false') return true;
  const codes = restriction === 'true' ? courierCodes : restriction.split(',');
  return codes.length === 0 || typeof courierCode !== 'string' || codes.includes(courierCode.toLowerCase());
}

function matches(payload: TrackerPayload, candidate: TrackerPayload): boolean {
  return JSON.stringify(payload, MATCHED_FIELDS) === JSON.stringify(candidate, MATCHED_FIELDS);
}

/** Couriers overlap without matching, and the two shipments have the same date and destination. */
function collides(payload: TrackerPayload, candidate: TrackerPayload): boolean {
  return (
    payload.courierCodes.some((code) => candidate.courierCodes.includes(code)) &&
    JSON.stringify(payload.courierCodes) !== JSON.stringify(candidate.courierCodes) &&
    payload.shippingDay === candidate.shippingDay &&
    payload.destinationCountryCode === candidate.destinationCountryCode
  );
}

/** All trackers of the fake's account, in the order they were created. */
export class TrackerStore {
  readonly #byId = new Map<unknown, TrackerState>();
  /** Archiving frees an id, but the archived tracker is found by it until another one takes it. */
  readonly #byClientTrackerId = new Map<unknown, TrackerState>();
  readonly #byTrackingNumber = new Map<string, TrackerState[]>();

  get size(): number {
    return this.#byId.size;
  }

  all(): TrackerState[] {
    return [...this.#byId.values()];
  }

  withTrackingNumber(trackingNumber: string): readonly TrackerState[] {
    return this.#byTrackingNumber.get(trackingNumber) ?? [];
  }

  add(tracker: TrackerState): void {
    this.#byId.set(tracker.trackerId, tracker);
    const others = this.withTrackingNumber(tracker.trackingNumber);
    this.#byTrackingNumber.set(tracker.trackingNumber, [...others, tracker]);
    if (tracker.clientTrackerId !== null) this.#byClientTrackerId.set(tracker.clientTrackerId, tracker);
  }

  find(id: unknown, searchBy: SearchBy = 'trackerId'): TrackerState | undefined {
    return (searchBy === 'trackerId' ? this.#byId : this.#byClientTrackerId).get(id);
  }

  /** The tracker to reuse, or `undefined` for a new one; the synchronous endpoint also rejects overlapping couriers. */
  findReusable(payload: TrackerPayload, isSynchronous = false): TrackerState | undefined {
    const { clientTrackerId, trackingNumber } = payload;
    const named = clientTrackerId === null ? undefined : this.#byClientTrackerId.get(clientTrackerId);
    if (named?.isSubscribed) {
      if (named.trackingNumber === trackingNumber && matches(payload, named)) return named;
      const message = '`clientTrackerId` belongs to an active tracker with a different payload.';
      throw rejection(400, 'tracker_conflict', message);
    }
    const active = this.withTrackingNumber(trackingNumber).filter(({ isSubscribed }) => isSubscribed);
    const same = active.find((candidate) => matches(payload, candidate));
    if (clientTrackerId === null && same !== undefined) return same;
    if (isSynchronous && active.some((candidate) => collides(payload, candidate))) {
      const message = '`courierCode` overlaps the couriers of an existing tracker without matching them.';
      throw rejection(400, 'tracker_conflict', message);
    }
    return undefined;
  }

  /** Changes a tracker; makes it active again unless its `clientTrackerId` was taken meanwhile. */
  update(tracker: TrackerState, patch: TrackerUpdateRequest): void {
    const { clientTrackerId } = tracker;
    const { isSubscribed = tracker.isSubscribed, courierCode } = patch;
    if (clientTrackerId !== null && isSubscribed && !tracker.isSubscribed) {
      if (this.#byClientTrackerId.get(clientTrackerId)?.isSubscribed)
        throw rejection(400, 'tracker_conflict', '`clientTrackerId` belongs to another active tracker now.');
      this.#byClientTrackerId.set(clientTrackerId, tracker);
    }
    const hints = toHints(patch);
    tracker.isSubscribed = isSubscribed;
    if (courierCode !== undefined) tracker.courierCodes = hints.courierCodes;
    tracker.originCountryCode = hints.originCountryCode ?? tracker.originCountryCode;
    tracker.destinationCountryCode = hints.destinationCountryCode ?? tracker.destinationCountryCode;
    tracker.destinationPostCode = hints.destinationPostCode ?? tracker.destinationPostCode;
    tracker.shippingDay = hints.shippingDay ?? tracker.shippingDay;
  }
}

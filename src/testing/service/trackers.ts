// Specification: service.md 2.2, 2.4; public contract, "Records"

import type { CourierCodes } from '../../schemas/courier.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import type { SearchBy } from '../../schemas/identifier.ts';
import type { Tracker, TrackerRequest } from '../../schemas/tracker.ts';
import type { Tracking } from '../../schemas/tracking.ts';
import { resultsView, type ShipmentState } from '../shipments/shipment.ts';
import { rejection } from './http.ts';
import { dayOf, toAlpha2 } from './input.ts';

/** What of a creation request is kept, in the form the service compares it. */
export interface TrackerPayload {
  trackingNumber: string;
  clientTrackerId: string | null;
  shipmentReference: string | null;
  /** Each once, in a fixed order. */
  courierCodes: readonly string[];
  originCountryCode: string | null;
  destinationCountryCode: string | null;
  destinationPostCode: string | null;
  /** Day precision: the day alone. */
  shippingDay: string | null;
  courierName: string | null;
  trackingUrl: string | null;
  /** `true`, `false` or the codes, as one comparable string. */
  restriction: string | null;
}

/** A tracker as the fake keeps it. */
export interface TrackerState extends TrackerPayload {
  readonly trackerId: string;
  readonly createdAtMs: number;
  /** What was gathered for it so far. */
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

/** A list of courier codes in the form they are compared: each once, in a fixed order. */
export function courierList(codes: CourierCodes | undefined): string[] {
  const list = typeof codes === 'string' ? [codes] : (codes ?? []);
  return [...new Set(list.map((code) => code.trim().toLowerCase()))].sort();
}

/** The alpha-2 code of a country that a request names. */
export function countryOf(code: string | undefined): string | null {
  return code === undefined ? null : (toAlpha2(code) ?? null);
}

/** Brings a creation request into the form it is kept and compared in. */
export function toPayload(input: TrackerRequest): TrackerPayload {
  const restriction = input.settings?.restrictTrackingToCourierCode ?? null;
  const isList = restriction !== null && typeof restriction !== 'boolean';
  return {
    trackingNumber: input.trackingNumber.toUpperCase(),
    clientTrackerId: input.clientTrackerId || null,
    shipmentReference: input.shipmentReference ?? null,
    courierCodes: courierList(input.courierCode),
    originCountryCode: countryOf(input.originCountryCode),
    destinationCountryCode: countryOf(input.destinationCountryCode),
    destinationPostCode: input.destinationPostCode ?? null,
    shippingDay: input.shippingDate === undefined ? null : dayOf(input.shippingDate),
    courierName: input.courierName ?? null,
    trackingUrl: input.trackingUrl ?? null,
    restriction: isList ? courierList(restriction).join(',') : (restriction?.toString() ?? null),
  };
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

/** True while the service looks for news of a tracker. */
export function isTracked({ trackedUntilMs }: TrackerState, nowMs: number): boolean {
  return nowMs < trackedUntilMs;
}

/** A tracker as the API responds with it. */
export function trackerView(tracker: TrackerState, nowMs: number): Tracker {
  return {
    ...webhookTrackerView(tracker),
    isTracked: isTracked(tracker, nowMs),
    courierCode: [...tracker.courierCodes],
  };
}

/** Results of a tracker. */
export function trackingView(tracker: TrackerState, nowMs: number): Tracking {
  return { tracker: trackerView(tracker, nowMs), ...resultsView(tracker.shipment, tracker) };
}

/** What tells the shipments of one number apart, as one comparable text. */
export function shipmentKeyOf(payload: TrackerPayload): string {
  const { courierCodes, originCountryCode, destinationCountryCode, shippingDay } = payload;
  return JSON.stringify([courierCodes, originCountryCode, destinationCountryCode, shippingDay]);
}

/** True unless the tracker is restricted to other couriers; an event without a courier is nobody else's. */
export function isOfItsCourier(
  { restriction, courierCodes }: TrackerPayload,
  { courierCode }: Pick<TrackingEvent, 'courierCode'>,
): boolean {
  if (restriction === null || restriction === 'false') return true;
  const codes = restriction === 'true' ? courierCodes : restriction.split(',');
  return codes.length === 0 || typeof courierCode !== 'string' || codes.includes(courierCode.toLowerCase());
}

/** The fields that must all match for a tracker to be reused, courier codes besides, as one comparable text. */
function matchedFields(payload: TrackerPayload): string {
  const { shippingDay, originCountryCode, destinationCountryCode, destinationPostCode } = payload;
  const { shipmentReference, courierName, trackingUrl, restriction } = payload;
  const places = [originCountryCode, destinationCountryCode, destinationPostCode];
  return JSON.stringify([shippingDay, places, shipmentReference, courierName, trackingUrl, restriction]);
}

function sameCouriers(one: TrackerPayload, other: TrackerPayload): boolean {
  return JSON.stringify(one.courierCodes) === JSON.stringify(other.courierCodes);
}

function matches(payload: TrackerPayload, candidate: TrackerPayload): boolean {
  return sameCouriers(payload, candidate) && matchedFields(payload) === matchedFields(candidate);
}

/** Couriers overlap without matching, and the two shipments have the same date and destination. */
function collides(payload: TrackerPayload, candidate: TrackerPayload): boolean {
  return (
    payload.courierCodes.some((code) => candidate.courierCodes.includes(code)) &&
    !sameCouriers(payload, candidate) &&
    payload.shippingDay === candidate.shippingDay &&
    payload.destinationCountryCode === candidate.destinationCountryCode
  );
}

/** All trackers of the fake's account, in the order they were created. */
export class TrackerStore {
  readonly #byId = new Map<string, TrackerState>();
  /** Active trackers only: archiving frees the identifier. */
  readonly #byClientTrackerId = new Map<string, TrackerState>();
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

  withId(trackerId: unknown): TrackerState | undefined {
    return typeof trackerId === 'string' ? this.#byId.get(trackerId) : undefined;
  }

  add(tracker: TrackerState): void {
    this.#byId.set(tracker.trackerId, tracker);
    const others = this.withTrackingNumber(tracker.trackingNumber);
    this.#byTrackingNumber.set(tracker.trackingNumber, [...others, tracker]);
    if (tracker.clientTrackerId !== null) this.#byClientTrackerId.set(tracker.clientTrackerId, tracker);
  }

  /**
   * Finds a tracker by one of its ids; the client's own one addresses active trackers only.
   *
   * @throws ServiceError `tracker_not_found` (404)
   */
  get(id: string, searchBy: SearchBy = 'trackerId'): TrackerState {
    const tracker = (searchBy === 'trackerId' ? this.#byId : this.#byClientTrackerId).get(id);
    if (tracker === undefined) throw rejection(404, 'tracker_not_found', 'There is no such tracker.');
    return tracker;
  }

  /**
   * Decides between reuse, a new tracker and a conflict; only active trackers count.
   *
   * @param isSynchronous - true for `POST /trackers/track`, which also rejects overlapping couriers
   * @returns the tracker to reuse, or `undefined` for a new one
   * @throws ServiceError `tracker_conflict` (400)
   */
  findReusable(payload: TrackerPayload, isSynchronous = false): TrackerState | undefined {
    const { clientTrackerId, trackingNumber } = payload;
    const named = clientTrackerId === null ? undefined : this.#byClientTrackerId.get(clientTrackerId);
    if (named !== undefined) {
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

  /**
   * Changes a tracker.
   *
   * @throws ServiceError `tracker_conflict` (400) when it becomes active and its `clientTrackerId` was taken meanwhile
   */
  change(tracker: TrackerState, changes: Partial<TrackerState>): void {
    const { clientTrackerId, isSubscribed } = tracker;
    const willBeSubscribed = changes.isSubscribed ?? isSubscribed;
    if (clientTrackerId !== null && willBeSubscribed !== isSubscribed) {
      const isTaken = this.#byClientTrackerId.has(clientTrackerId);
      if (willBeSubscribed && isTaken) {
        const message = '`clientTrackerId` belongs to another active tracker now.';
        throw rejection(400, 'tracker_conflict', message);
      }
      if (willBeSubscribed) this.#byClientTrackerId.set(clientTrackerId, tracker);
      else this.#byClientTrackerId.delete(clientTrackerId);
    }
    Object.assign(tracker, changes);
  }
}

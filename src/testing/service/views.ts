import type { TrackingEvent } from '../../schemas/event.ts';
import type { Tracker } from '../../schemas/tracker.ts';
import type { PerCallTracking, Shipment, Statistics, Tracking } from '../../schemas/tracking.ts';
import type { ShipmentState } from '../shipments/shipment-state.ts';
import type { TrackerState } from '../trackers/tracker-state.ts';

/** What a webhook tells of a tracker: no `isTracked` and no `courierCode` (public contract). */
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

/** A tracker as the API answers with it; an archived one is not tracked any more. */
export function trackerView(tracker: TrackerState, shipment: ShipmentState): Tracker {
  return {
    ...webhookTrackerView(tracker),
    isTracked: tracker.isSubscribed && !shipment.isStopped,
    courierCode: [...tracker.courierCodes],
  };
}

/** What a caller told of the places. */
interface Places {
  readonly originCountryCode: string | null;
  readonly destinationCountryCode: string | null;
}

/** The shipment as of its latest visible event; add-ons are absent unless a test set them. */
export function shipmentView(
  shipment: ShipmentState,
  places: Places,
  events: readonly TrackingEvent[],
): Shipment {
  const latest = events.at(-1);
  return {
    shipmentId: shipment.shipmentId,
    statusCode: latest?.statusCode ?? null,
    statusCategory: latest?.statusCategory ?? null,
    statusMilestone: latest?.statusMilestone ?? 'pending',
    originCountryCode: places.originCountryCode,
    destinationCountryCode: places.destinationCountryCode,
    trackingNumbers: [{ tn: shipment.trackingNumber }],
    recipient: null,
    ...shipment.fields,
    delivery: {
      estimatedDeliveryDate: null,
      courierEstimatedDeliveryDate: null,
      service: null,
      ...shipment.fields.delivery,
    },
  };
}

/** When each milestone was first reached. */
export function statisticsView(events: readonly TrackingEvent[]): Statistics {
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

/** Results without a tracker, newest event first. */
export function perCallView(
  shipment: ShipmentState,
  places: Places,
  events: readonly TrackingEvent[],
): PerCallTracking {
  return {
    shipment: shipmentView(shipment, places, events),
    events: [...events].reverse(),
    statistics: statisticsView(events),
  };
}

/** Results of a tracker, newest event first. */
export function trackingView(
  tracker: TrackerState,
  shipment: ShipmentState,
  events: readonly TrackingEvent[],
): Tracking {
  return { tracker: trackerView(tracker, shipment), ...perCallView(shipment, tracker, events) };
}

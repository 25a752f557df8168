import { readTime } from './fields.ts';
import type { OccurrenceDatetime } from './order.ts';

interface EstimatedRange {
  readonly from?: string | null | undefined;
  readonly to?: string | null | undefined;
}

/** The estimates of a shipment (docs/service.md 2.8); any of them can be missing. */
export interface ShipmentWithEstimates {
  /** Estimated dates and windows of the delivery, as the service sent them. */
  readonly delivery?:
    | {
        readonly courierEstimatedDeliveryDate?: EstimatedRange | null | undefined;
        readonly estimatedDeliveryDate?: string | null | undefined;
        readonly aiPredictiveDeliveryDate?: EstimatedRange | null | undefined;
      }
    | null
    | undefined;
}

/** When a shipment is expected to arrive. */
export interface DeliveryEstimate {
  /** Earliest time: a date, a local time, or a time with an offset, as the service sent it. */
  readonly from?: string;
  /** Latest time, in one of the same forms; equal to `from` if the service estimates one date. */
  readonly to?: string;
  /** The source of the estimate: the courier, the service, or the service's add-on for predictions. */
  readonly source: 'courier' | 'service' | 'prediction';
}

/**
 * Picks the best estimate of the delivery: the courier's window, else the service's date, else the service's prediction. Empty,
 * unreadable and reversed estimates are skipped.
 *
 * @param shipment - `shipment` of results or of a webhook
 * @returns the estimate with its texts unchanged; undefined if there is none. A delivered shipment keeps its last estimate.
 * @example
 * const { from, to } = deliveryEstimate(tracking.shipment) ?? {};
 */
export function deliveryEstimate(
  shipment: ShipmentWithEstimates | null | undefined,
): DeliveryEstimate | undefined {
  const delivery = shipment?.delivery;
  const date = delivery?.estimatedDeliveryDate;
  const sources = [
    ['courier', delivery?.courierEstimatedDeliveryDate],
    ['service', { from: date, to: date }],
    ['prediction', delivery?.aiPredictiveDeliveryDate],
  ] as const;
  for (const [source, range] of sources) {
    const { from, to } = range ?? {};
    const fromTime = readTime(from);
    const toTime = readTime(to);
    if (!(fromTime || toTime) || (fromTime && toTime && isReversed(fromTime, toTime))) continue;
    return { ...(from && fromTime && { from }), ...(to && toTime && { to }), source };
  }
  return undefined;
}

function isReversed(from: OccurrenceDatetime, to: OccurrenceDatetime): boolean {
  if ('epochMs' in from && 'epochMs' in to) return from.epochMs > to.epochMs;
  // A local time has no known instant, so compare both as they are written; a date is the whole day.
  if (from.date !== to.date) return from.date > to.date;
  return 'timeMs' in from && 'timeMs' in to && from.timeMs > to.timeMs;
}

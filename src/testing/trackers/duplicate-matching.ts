import { ServiceError } from '../service/replies.ts';
import type { TrackerPayload, TrackerState } from './tracker-state.ts';

/** The nine fields that must all match for a tracker to be reused (service.md 2.4, rule 2). */
const MATCHED_FIELDS = [
  'shippingDay',
  'originCountryCode',
  'destinationCountryCode',
  'destinationPostCode',
  'shipmentReference',
  'courierName',
  'trackingUrl',
  'restriction',
  'courierCodes',
] as const satisfies readonly (keyof TrackerPayload)[];

function sameCouriers(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((code, index) => code === other[index]);
}

function matches(payload: TrackerPayload, candidate: TrackerPayload): boolean {
  return MATCHED_FIELDS.every((field) =>
    field === 'courierCodes'
      ? sameCouriers(payload.courierCodes, candidate.courierCodes)
      : payload[field] === candidate[field],
  );
}

/** Couriers overlap without matching, and neither date nor destination tells the two shipments apart. */
function collides(payload: TrackerPayload, candidate: TrackerPayload): boolean {
  return (
    payload.courierCodes.some((code) => candidate.courierCodes.includes(code)) &&
    !sameCouriers(payload.courierCodes, candidate.courierCodes) &&
    payload.shippingDay === candidate.shippingDay &&
    payload.destinationCountryCode === candidate.destinationCountryCode
  );
}

function conflict(message: string): ServiceError {
  return new ServiceError(400, { code: 'tracker_conflict', message });
}

/** Active trackers that a creation request may mean. */
export interface Candidates {
  readonly byClientTrackerId: TrackerState | undefined;
  readonly byTrackingNumber: readonly TrackerState[];
}

/**
 * Decides between reuse, a new tracker and a conflict (service.md 2.4).
 *
 * @param isSynchronous - true for `POST /trackers/track`, which also refuses overlapping couriers
 * @returns the tracker to reuse, or `undefined` for a new one
 * @throws ServiceError `tracker_conflict` (400)
 */
export function findReusable(
  payload: TrackerPayload,
  { byClientTrackerId, byTrackingNumber }: Candidates,
  isSynchronous: boolean,
): TrackerState | undefined {
  if (byClientTrackerId !== undefined) {
    const isSame =
      byClientTrackerId.trackingNumber === payload.trackingNumber && matches(payload, byClientTrackerId);
    if (isSame) return byClientTrackerId;
    throw conflict('`clientTrackerId` belongs to an active tracker with a different payload.');
  }
  if (payload.clientTrackerId === null) {
    const found = byTrackingNumber.find((candidate) => matches(payload, candidate));
    if (found !== undefined) return found;
  }
  if (isSynchronous && byTrackingNumber.some((candidate) => collides(payload, candidate)))
    throw conflict('`courierCode` overlaps the couriers of an existing tracker without matching them.');
  return undefined;
}

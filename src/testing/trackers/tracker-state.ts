import type { CourierCodes } from '../../schemas/courier.ts';
import type { TrackerInput } from '../../schemas/tracker.ts';
import { toAlpha2 } from '../service/countries.ts';
import { dayOf } from '../service/validate.ts';

/** What of a creation request is kept, in the form the service compares it (service.md 2.4). */
export interface TrackerPayload {
  readonly trackingNumber: string;
  readonly clientTrackerId: string | null;
  readonly shipmentReference: string | null;
  readonly courierCodes: readonly string[];
  readonly originCountryCode: string | null;
  readonly destinationCountryCode: string | null;
  readonly destinationPostCode: string | null;
  /** Day precision: the day alone. */
  readonly shippingDay: string | null;
  readonly courierName: string | null;
  readonly trackingUrl: string | null;
  /** `true`, `false` or the codes, as one comparable string. */
  readonly restriction: string | null;
}

/** A tracker as the fake keeps it. */
export interface TrackerState extends TrackerPayload {
  readonly trackerId: string;
  readonly createdAtMs: number;
  /** False once archived. */
  readonly isSubscribed: boolean;
  /** True once the service asked couriers for it; before, there are no results. */
  readonly isFetched: boolean;
}

/** A list of courier codes in the form they are compared: each once, in a fixed order. */
export function courierList(codes: CourierCodes | undefined): string[] {
  const list = typeof codes === 'string' ? [codes] : (codes ?? []);
  return [...new Set(list.map((code) => code.trim().toLowerCase()))].sort();
}

function restrictionText(restriction: boolean | CourierCodes | undefined): string | null {
  if (restriction === undefined) return null;
  return typeof restriction === 'boolean' ? String(restriction) : courierList(restriction).join(',');
}

function country(code: string | undefined): string | null {
  return code === undefined ? null : (toAlpha2(code) ?? null);
}

/** Brings a creation request into the form it is kept and compared in. */
export function toPayload(input: TrackerInput): TrackerPayload {
  return {
    trackingNumber: input.trackingNumber.toUpperCase(),
    clientTrackerId: input.clientTrackerId || null,
    shipmentReference: input.shipmentReference ?? null,
    courierCodes: courierList(input.courierCode),
    originCountryCode: country(input.originCountryCode),
    destinationCountryCode: country(input.destinationCountryCode),
    destinationPostCode: input.destinationPostCode ?? null,
    shippingDay: input.shippingDate === undefined ? null : dayOf(input.shippingDate),
    courierName: input.courierName ?? null,
    trackingUrl: input.trackingUrl ?? null,
    restriction: restrictionText(input.settings?.restrictTrackingToCourierCode),
  };
}

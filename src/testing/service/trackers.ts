import type { Courier, CourierCodes } from '../../schemas/courier.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import type { SearchBy, Tracker, TrackerRequest, TrackerUpdateRequest } from '../../schemas/tracker.ts';
import type { Tracking } from '../../schemas/tracking.ts';
import { buildResults, type ShipmentState } from '../shipments/shipment.ts';
import { rejection } from './http.ts';
import { toAlpha2, toDay } from './input.ts';

function normalizeCouriers(codes: CourierCodes | undefined): string[] {
  const list = typeof codes === 'string' ? [codes] : (codes ?? []);
  return [...new Set(list.map((code) => code.trim().toLowerCase()))].sort();
}

type HintFields =
  | 'courierCode'
  | 'originCountryCode'
  | 'destinationCountryCode'
  | 'destinationPostCode'
  | 'shippingDate';

export function toHints(input: Pick<TrackerUpdateRequest, HintFields>) {
  return {
    courierCodes: normalizeCouriers(input.courierCode),
    originCountryCode: toAlpha2(input.originCountryCode ?? '') ?? null,
    destinationCountryCode: toAlpha2(input.destinationCountryCode ?? '') ?? null,
    destinationPostCode: input.destinationPostCode ?? null,
    shippingDay: input.shippingDate === undefined ? null : toDay(input.shippingDate),
  };
}

export type Hints = ReturnType<typeof toHints>;

/** A courier of the fake. */
export interface FakeCourier extends Courier {
  /** False for a courier that cannot be asked while a synchronous call waits (docs/service.md 1.12). Default true. */
  readonly supportsSynchronousFetch?: boolean | undefined;
  /** True for a courier that needs the destination's post code, in the form of older lists (docs/service.md 3.15). Default: absent. */
  readonly is_destination_postcode_required?: boolean | undefined;
}

function courier(courierCode: string, courierName: string, countryCode: string | null): FakeCourier {
  return {
    courierCode,
    courierName,
    website: null,
    isPost: true,
    countryCode,
    requiredFields: null,
    isDeprecated: false,
  };
}

/** The couriers from which `buildCourier` picks. */
export function createCommonCouriers(): FakeCourier[] {
  const requiredFields = ['destinationPostCode', 'destinationCountryCode'];
  return [
    courier('us-post', 'USPS', 'US'),
    courier('fr-post', 'La Poste', 'FR'),
    { ...courier('cn-post', 'China Post', 'CN'), supportsSynchronousFetch: false },
    { ...courier('nl-post', 'PostNL', 'NL'), requiredFields },
  ];
}

/** The couriers of a new fake: the common ones, and one for each peculiarity of the service's list (docs/service.md 2.15, 3.15). */
export function createCouriers(): FakeCourier[] {
  return [
    ...createCommonCouriers(),
    {
      ...courier('account-express', 'Account Express ', null),
      isPost: false,
      requiredFields: ['courierAccount'],
    },
    { ...courier('no-fields-express', 'Östra Bud', 'SWE'), isPost: false, requiredFields: [] },
    { ...courier('jp-post', '日本郵便', 'JP'), is_destination_postcode_required: true },
    { ...courier('old-post', 'Old Mail', 'US'), isDeprecated: true },
  ];
}

export function toPublicCourier({ supportsSynchronousFetch: _, ...courier }: FakeCourier): Courier {
  return courier;
}

/** False when every named courier requires a field that is missing, so that none of them responds. */
export function canRespond(couriers: readonly FakeCourier[], hints: Hints): boolean {
  // Couriers may also require `courierAccount`, but no request has such a field, so it never counts as missing.
  const isMissing = (field: string) =>
    (field === 'destinationPostCode' || field === 'destinationCountryCode') && hints[field] === null;
  const lacksField = (code: string) => {
    const courier = couriers.find(({ courierCode }) => courierCode === code);
    const needsPostCode = courier?.is_destination_postcode_required === true;
    return [...(courier?.requiredFields ?? []), ...(needsPostCode ? ['destinationPostCode'] : [])].some(
      isMissing,
    );
  };
  return hints.courierCodes.length === 0 || !hints.courierCodes.every(lacksField);
}

/** False when no courier responds while the caller waits. If none is named, the couriers that know the number decide. */
export function canRespondAtOnce(couriers: readonly FakeCourier[], hints: Hints, known: string[]): boolean {
  const courierCodes = hints.courierCodes.length > 0 ? hints.courierCodes : known;
  const isSynchronous = (code: string) =>
    couriers.find((candidate) => candidate.courierCode === code)?.supportsSynchronousFetch ?? true;
  return courierCodes.length === 0 || courierCodes.some(isSynchronous);
}

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
    recipientName: input.recipient?.name || null,
    /** `true`, `false` or the codes, as one text that can be compared. */
    restriction: isList ? normalizeCouriers(restriction).join(',') : (restriction?.toString() ?? null),
  };
}

export type TrackerPayload = ReturnType<typeof toPayload>;

export interface StoredTracker extends TrackerPayload {
  readonly trackerId: string;
  isSubscribed: boolean;
}

export interface TrackerState extends StoredTracker {
  readonly createdAtMs: number;
  readonly shipment: ShipmentState;
  trackedUntilMs: number;
  isFetched: boolean;
  /** The `generatedAt` of the last push. */
  generatedAtMs: number;
}

export function buildWebhookTracker(tracker: TrackerState): Omit<Tracker, 'isTracked' | 'courierCode'> {
  const { trackerId, trackingNumber, shipmentReference, clientTrackerId, isSubscribed } = tracker;
  const createdAt = new Date(tracker.createdAtMs).toISOString();
  return { trackerId, trackingNumber, shipmentReference, clientTrackerId, isSubscribed, createdAt };
}

export function isTracked({ trackedUntilMs }: TrackerState, nowMs: number): boolean {
  return nowMs < trackedUntilMs;
}

export function buildTrackerRecord(tracker: TrackerState, nowMs: number): Tracker {
  const { courierCodes, recipientName } = tracker;
  return {
    ...buildWebhookTracker(tracker),
    isTracked: isTracked(tracker, nowMs),
    courierCode: [...courierCodes],
    ...(recipientName !== null && { recipient: { name: recipientName } }),
  };
}

export function buildTrackingRecord(tracker: TrackerState, nowMs: number): Tracking {
  return { tracker: buildTrackerRecord(tracker, nowMs), ...buildResults(tracker.shipment, tracker) };
}

/** The fields of duplicate matching (docs/service.md 4.2). */
const MATCHED_FIELDS = [
  'courierCodes',
  'originCountryCode',
  'destinationCountryCode',
  'shippingDay',
  'destinationPostCode',
  'shipmentReference',
  'courierName',
  'trackingUrl',
  'restriction',
];

/** Returns the couriers to which a tracker is restricted; none if it shows the events of every courier. */
function getRestriction({ restriction, courierCodes }: TrackerPayload): readonly string[] {
  if (restriction === null || restriction === 'false') return [];
  return restriction === 'true' ? courierCodes : restriction.split(',');
}

/** Returns the couriers that a tracker names: those to which it is restricted, or else its list. */
export function getCouriers(tracker: TrackerPayload): readonly string[] {
  const restriction = getRestriction(tracker);
  return restriction.length > 0 ? restriction : tracker.courierCodes;
}

/** False when the tracker is restricted to other couriers. An event without a courier is open to every tracker. */
export function mayDiscover(tracker: TrackerPayload, event: Partial<TrackingEvent>): boolean {
  const codes = getRestriction(tracker);
  return codes.length === 0 || !event.courierCode || codes.includes(event.courierCode.toLowerCase());
}

function matches(a: TrackerPayload, b: TrackerPayload, fields = MATCHED_FIELDS): boolean {
  return JSON.stringify(a, fields) === JSON.stringify(b, fields);
}

/**
 * True if the courier codes of the two trackers overlap but are not the same, and date and destination country are the same
 * (docs/service.md 4.3).
 */
function collides(a: TrackerPayload, b: TrackerPayload): boolean {
  const overlaps = a.courierCodes.some((code) => b.courierCodes.includes(code));
  const isSamePlace = matches(a, b, ['shippingDay', 'destinationCountryCode']);
  return overlaps && isSamePlace && !matches(a, b, ['courierCodes']);
}

export class TrackerStore<Tracker extends StoredTracker> {
  readonly #byId = new Map<unknown, Tracker>();
  /**
   * Archiving a tracker frees its `clientTrackerId` (docs/service.md 5.2). Until another tracker uses this id, a search by the id
   * still returns the archived tracker.
   */
  readonly #byClientTrackerId = new Map<unknown, Tracker>();
  readonly #byTrackingNumber = new Map<string, Tracker[]>();

  get size(): number {
    return this.#byId.size;
  }

  all(): Tracker[] {
    return [...this.#byId.values()];
  }

  findByTrackingNumber(trackingNumber: string): readonly Tracker[] {
    return this.#byTrackingNumber.get(trackingNumber) ?? [];
  }

  add(tracker: Tracker): void {
    this.#byId.set(tracker.trackerId, tracker);
    const others = this.findByTrackingNumber(tracker.trackingNumber);
    this.#byTrackingNumber.set(tracker.trackingNumber, [...others, tracker]);
    if (tracker.clientTrackerId !== null) this.#byClientTrackerId.set(tracker.clientTrackerId, tracker);
  }

  find(id: unknown, searchBy: SearchBy = 'trackerId'): Tracker | undefined {
    return (searchBy === 'trackerId' ? this.#byId : this.#byClientTrackerId).get(id);
  }

  /** Finds the tracker to reuse (docs/service.md 4.2). The synchronous endpoint also rejects overlapping couriers. */
  findReusable(payload: TrackerPayload, isSynchronous = false): Tracker | undefined {
    const { clientTrackerId, trackingNumber } = payload;
    const holder = clientTrackerId === null ? undefined : this.#byClientTrackerId.get(clientTrackerId);
    if (holder?.isSubscribed) {
      if (holder.trackingNumber === trackingNumber && matches(payload, holder)) return holder;
      const message = '`clientTrackerId` belongs to an active tracker with a different payload.';
      throw rejection(400, 'tracker_conflict', message);
    }
    const active = this.findByTrackingNumber(trackingNumber).filter(({ isSubscribed }) => isSubscribed);
    const same = active.find((candidate) => matches(payload, candidate));
    if (clientTrackerId === null && same !== undefined) return same;
    if (isSynchronous && active.some((candidate) => collides(payload, candidate))) {
      const message = 'Another tracker of this number has an overlapping list of couriers.';
      throw rejection(400, 'tracker_conflict', message);
    }
    return undefined;
  }

  /**
   * Changes a tracker. `isSubscribed: true` makes an archived tracker active again; it is refused if another active tracker has the
   * same `clientTrackerId` now.
   */
  update(tracker: Tracker, patch: TrackerUpdateRequest): void {
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
    tracker.courierName = patch.courierName ?? tracker.courierName;
    tracker.trackingUrl = patch.trackingUrl ?? tracker.trackingUrl;
    if (patch.recipient?.name !== undefined) tracker.recipientName = patch.recipient.name || null;
  }
}

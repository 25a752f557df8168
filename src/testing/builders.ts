import * as z from 'zod';
import { checkOptions } from '../common/check-options.ts';
import { EVENTS_TOPIC } from '../common/event-keys.ts';
import type { OptionShape } from '../common/option-schemas.ts';
import type { Courier } from '../schemas/courier.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { type EventsMessage, PROOF_OF_DELIVERY_TOPIC, type ProofOfDelivery } from '../schemas/webhook.ts';
import { resolveOptions, seedOption } from './options.ts';
import { FakeState } from './service/state.ts';
import {
  buildTrackerRecord,
  buildTrackingRecord,
  buildWebhookTracker,
  createCommonCouriers,
  toPublicCourier,
} from './service/trackers.ts';
import {
  BEIJING,
  buildProof,
  buildResults,
  type EventInput,
  SAN_RAFAEL,
  ShipmentState,
  seededRandom,
} from './shipments/shipment.ts';

/** Options of every builder. */
export interface BuildOptions {
  /** Decides ids and texts: the same seed builds the same record. Default 1. */
  readonly seed?: string | number | undefined;
}

const TRACKING_NUMBERS = ['9400115901047177598206', 'LA680658838NL', 'RR123456785CN'];
const CREATED_AT_MS = Date.UTC(2026, 2, 1, 9, 30);
const GENERATED_AT = '2026-03-06T18:00:00.000Z';
const HISTORY: readonly EventInput[] = [
  { ...BEIJING, statusMilestone: 'info_received', occurrenceDatetime: '2026-03-01T17:12:57+08:00' },
  { ...SAN_RAFAEL, statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-05' },
  { ...SAN_RAFAEL, statusMilestone: 'delivered', occurrenceDatetime: '2026-03-06T17:42:00Z' },
];

const buildOptions = z.strictObject({ seed: seedOption.default(1) } satisfies OptionShape<BuildOptions>);

function createDeliveredTracker(options: BuildOptions = {}, trackingNumber?: string | null) {
  const { seed } = checkOptions(buildOptions, options);
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(random() * items.length)];
  const state = new FakeState(resolveOptions({ seed, now: () => CREATED_AT_MS, webhooks: false }));
  const input = { trackingNumber: trackingNumber ?? pick(TRACKING_NUMBERS) ?? 'RR123456785CN' };
  const { tracker } = state.createTracker(input);
  state.addEvents({ parcel: state.getParcel(input.trackingNumber), tracker }, HISTORY, CREATED_AT_MS);
  return { ids: state.ids, pick, tracker };
}

/**
 * Builds a tracker as the API responds with it.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid tracker
 * @throws ConfigurationError for an invalid option
 * @example buildTracker({ isTracked: false }).isTracked // false
 */
export function buildTracker(overrides: Partial<Tracker> = {}, options?: BuildOptions): Tracker {
  const { tracker } = createDeliveredTracker(options, overrides.trackingNumber);
  return { ...buildTrackerRecord(tracker, CREATED_AT_MS), ...overrides };
}

/**
 * Builds an event of a shipment.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid event
 * @throws ConfigurationError for an invalid option
 */
export function buildEvent(overrides: Partial<TrackingEvent> = {}, options?: BuildOptions): TrackingEvent {
  const { ids, tracker, pick } = createDeliveredTracker(options, overrides.trackingNumber);
  const shipment = new ShipmentState(tracker.trackingNumber, tracker.shipment.shipmentId);
  return shipment.add({ ...pick(HISTORY), ...overrides }, ids, CREATED_AT_MS);
}

/**
 * Builds tracking results: a tracker, a delivered shipment and three events, newest first.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns valid tracking results
 * @throws ConfigurationError for an invalid option
 * @example buildTracking({ tracker: buildTracker({ isTracked: false }), events: [] })
 */
export function buildTracking(overrides: Partial<Tracking> = {}, options?: BuildOptions): Tracking {
  const { tracker } = createDeliveredTracker(options, overrides.tracker?.trackingNumber);
  return { ...buildTrackingRecord(tracker, CREATED_AT_MS), ...overrides };
}

/**
 * Builds one item of a webhook with new events, as `parseWebhook` returns it. A body contains it as `{ trackings: [item] }`.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid message
 * @throws ConfigurationError for an invalid option
 */
export function buildWebhookMessage(
  overrides: Partial<EventsMessage> = {},
  options?: BuildOptions,
): EventsMessage {
  const { ids, tracker } = createDeliveredTracker(options, overrides.tracker?.trackingNumber);
  return {
    kind: 'events',
    metadata: { generatedAt: GENERATED_AT, messageId: ids.next('message'), topic: EVENTS_TOPIC },
    tracker: buildWebhookTracker(tracker),
    ...buildResults(tracker.shipment, tracker),
    ...overrides,
  };
}

/**
 * Builds one item of a webhook with a proof of delivery, as `parseWebhook` returns it.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid proof of delivery
 * @throws ConfigurationError for an invalid option
 */
export function buildProofOfDelivery(
  overrides: Partial<ProofOfDelivery> = {},
  options?: BuildOptions,
): ProofOfDelivery {
  const { ids, tracker } = createDeliveredTracker(options, overrides.tracker?.trackingNumber);
  return {
    kind: 'proofOfDelivery',
    metadata: { generatedAt: GENERATED_AT, messageId: ids.next('message'), topic: PROOF_OF_DELIVERY_TOPIC },
    tracker: buildWebhookTracker(tracker),
    data: buildProof(tracker.shipment),
    ...overrides,
  };
}

/**
 * Builds a courier.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid courier
 * @throws ConfigurationError for an invalid option
 */
export function buildCourier(overrides: Partial<Courier> = {}, options?: BuildOptions): Courier {
  const courier = createDeliveredTracker(options).pick(createCommonCouriers()) ?? { courierCode: 'us-post' };
  return { ...toPublicCourier(courier), ...overrides };
}

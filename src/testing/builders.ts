// Specification: service.md 2.2, 2.3, 4, 6; public contract, "Records", "Webhooks"
import { z } from 'zod';
import { checkOptions, type OptionShape } from '../common/option-checks.ts';
import type { Courier } from '../schemas/courier.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import {
  EVENTS_TOPIC,
  type EventsDelivery,
  PROOF_OF_DELIVERY_TOPIC,
  type ProofOfDelivery,
} from '../schemas/webhook.ts';
import { resolveOptions, seedOption } from './options.ts';
import { defaultCouriers, publicCourier } from './service/couriers.ts';
import { seededRandom } from './service/seeded.ts';
import { FakeState } from './service/state.ts';
import { trackerView, trackingView, webhookTrackerView } from './service/trackers.ts';
import { type EventInput, resultsView, ShipmentState, signatureOf } from './shipments/shipment.ts';

/** The fields of a record that a test cares about; the others are filled in. */
export type Overrides<Built> = { readonly [Field in keyof Built]?: Built[Field] };

/** Options of every builder. */
export interface BuildOptions {
  /** Decides ids and texts: the same seed builds the same record. Default 1. */
  readonly seed?: string | number;
}

const TRACKING_NUMBERS = ['9400115901047177598206', 'LA680658838NL', 'RR123456785CN'];
const CREATED_AT_MS = Date.UTC(2026, 2, 1, 9, 30);
const GENERATED_AT = '2026-03-06T18:00:00.000Z';
const LOCAL_POST = { courierCode: 'us-post', location: 'SAN RAFAEL, CA 94901' };
const HISTORY: readonly EventInput[] = [
  {
    courierCode: 'cn-post',
    location: 'Beijing',
    statusMilestone: 'info_received',
    occurrenceDatetime: '2026-03-01T17:12:57+08:00',
  },
  { ...LOCAL_POST, statusMilestone: 'in_transit', occurrenceDatetime: '2026-03-05' },
  { ...LOCAL_POST, statusMilestone: 'delivered', occurrenceDatetime: '2026-03-06T17:42:00Z' },
];

const buildOptions = z.strictObject({ seed: seedOption.default(1) } satisfies OptionShape<BuildOptions>);

/** Everything the builders draw from, for one seed: a fake whose one shipment was delivered. */
function material(options: BuildOptions = {}, trackingNumber?: string | null) {
  const { seed } = checkOptions(buildOptions, options);
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[Math.floor(random() * items.length)];
  const state = new FakeState(resolveOptions({ seed, now: () => CREATED_AT_MS, webhooks: false }));
  const input = { trackingNumber: trackingNumber ?? pick(TRACKING_NUMBERS) ?? 'RR123456785CN' };
  const { tracker } = state.createTracker(input, 'trackers.create');
  state.addEvents({ number: state.number(input.trackingNumber), only: tracker }, HISTORY, CREATED_AT_MS);
  return { ids: state.ids, pick, tracker };
}

/**
 * Builds a tracker as the API responds with it.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid tracker
 * @throws ConfigurationError when an option makes no sense
 * @example buildTracker({ isTracked: false }).isTracked // false
 */
export function buildTracker(overrides: Overrides<Tracker> = {}, options?: BuildOptions): Tracker {
  const { tracker } = material(options, overrides.trackingNumber);
  return { ...trackerView(tracker, CREATED_AT_MS), ...overrides };
}

/**
 * Builds an event of a shipment.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid event
 * @throws ConfigurationError when an option makes no sense
 */
export function buildEvent(overrides: Overrides<TrackingEvent> = {}, options?: BuildOptions): TrackingEvent {
  const { ids, tracker, pick } = material(options, overrides.trackingNumber);
  const shipment = new ShipmentState(tracker.trackingNumber, tracker.shipment.shipmentId);
  return shipment.add({ ...pick(HISTORY), ...overrides }, ids, CREATED_AT_MS);
}

/**
 * Builds tracking results: a tracker, a delivered shipment and three events, newest first.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns valid tracking results
 * @throws ConfigurationError when an option makes no sense
 * @example buildTracking({ tracker: buildTracker({ isTracked: false }), events: [] })
 */
export function buildTracking(overrides: Overrides<Tracking> = {}, options?: BuildOptions): Tracking {
  const { tracker } = material(options, overrides.tracker?.trackingNumber);
  return { ...trackingView(tracker, CREATED_AT_MS), ...overrides };
}

/**
 * Builds one item of a webhook with new events, as `parseWebhook` returns it.
 * To send it, put it into `{ trackings: [...] }`.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid delivery
 * @throws ConfigurationError when an option makes no sense
 */
export function buildDelivery(
  overrides: Overrides<EventsDelivery> = {},
  options?: BuildOptions,
): EventsDelivery {
  const { ids, tracker } = material(options, overrides.tracker?.trackingNumber);
  return {
    kind: 'events',
    metadata: { generatedAt: GENERATED_AT, messageId: ids.next('message'), topic: EVENTS_TOPIC },
    tracker: webhookTrackerView(tracker),
    ...resultsView(tracker.shipment, tracker),
    ...overrides,
  };
}

/**
 * Builds one item of a webhook with a proof of delivery, as `parseWebhook` returns it.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid proof of delivery
 * @throws ConfigurationError when an option makes no sense
 */
export function buildProofOfDelivery(
  overrides: Overrides<ProofOfDelivery> = {},
  options?: BuildOptions,
): ProofOfDelivery {
  const { ids, tracker } = material(options, overrides.tracker?.trackingNumber);
  return {
    kind: 'proofOfDelivery',
    metadata: { generatedAt: GENERATED_AT, messageId: ids.next('message'), topic: PROOF_OF_DELIVERY_TOPIC },
    tracker: webhookTrackerView(tracker),
    data: signatureOf(tracker.shipment),
    ...overrides,
  };
}

/**
 * Builds a courier.
 *
 * @param overrides - fields to set
 * @param options - `seed`, default 1
 * @returns a valid courier
 * @throws ConfigurationError when an option makes no sense
 */
export function buildCourier(overrides: Overrides<Courier> = {}, options?: BuildOptions): Courier {
  const courier = material(options).pick(defaultCouriers()) ?? { courierCode: 'us-post' };
  return { ...publicCourier(courier), ...overrides };
}

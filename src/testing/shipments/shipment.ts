import { createHash } from 'node:crypto';
import { sortEvents } from '../../events/order.ts';
import { type KnownStatusMilestone, STATUS_MILESTONES } from '../../events/statuses.ts';
import type { StatusCategory, StatusCode, TrackingEvent } from '../../schemas/event.ts';
import type { PerCallTracking, Shipment } from '../../schemas/tracking.ts';
import type { ProofOfDelivery } from '../../schemas/webhook.ts';

/**
 * Generates ids from the seed and a counter. Each kind has its own counter, so the ids of trackers do not depend on the number of
 * requests. Like the ids of the service, they are UUIDs (docs/service.md 2.19); these have the form of version 4.
 */
export class SeededIds {
  readonly #seed: string;
  readonly #counts = new Map<string, number>();

  constructor(seed: string | number) {
    this.#seed = String(seed);
  }

  next(kind: string): string {
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    const hash = createHash('sha256').update(`${this.#seed}\n${kind}\n${count}`).digest();
    const hex = hash.toString('hex');
    const variant = (8 + (hash.readUInt8(8) & 3)).toString(16);
    return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, `$1-$2-4$3-${variant}$4-$5`);
  }
}

export function seededRandom(seed: string | number): () => number {
  const ids = new SeededIds(seed);
  return () => Number.parseInt(ids.next('random').replaceAll('-', '').slice(0, 12), 16) / 2 ** 48;
}

/** The fields of an event that a test sets; the fake fills in the other fields. */
export type EventInput = Partial<TrackingEvent>;

type StatusDefaults = readonly [StatusCode | null, status: string];

const STATUS_DEFAULTS: Readonly<Record<KnownStatusMilestone, StatusDefaults>> = {
  pending: [null, 'Waiting for the courier'],
  info_received: ['data_order_created', 'Shipping label created'],
  in_transit: ['transit_handover', 'In transit'],
  out_for_delivery: ['delivery_out_for_delivery', 'Out for delivery'],
  failed_attempt: ['delivery_attempted', 'Delivery attempted, nobody at home'],
  available_for_pickup: ['delivery_available_for_pickup', 'Ready for collection'],
  delivered: ['delivery_delivered', 'Delivered'],
  exception: ['delivery_exception', 'Delivery exception'],
};

function fillStatus({ statusMilestone = 'in_transit', ...input }: EventInput): EventInput {
  const known = new Map<string | null, StatusDefaults>(Object.entries(STATUS_DEFAULTS));
  const [defaultCode, status] = known.get(statusMilestone) ?? STATUS_DEFAULTS.in_transit;
  const statusCode = input.statusCode === undefined ? defaultCode : input.statusCode;
  // The known codes begin with their category (docs/service.md 5.4).
  const statusCategory: StatusCategory | null = statusCode?.split('_', 1)[0] ?? null;
  return { statusCode, statusCategory, status, statusMilestone };
}

/** Names the source of the data of a courier, which is not the courier code (docs/service.md 2.20). */
function toSourceCode(courierCode: string | null): string | null {
  return courierCode === null ? null : `${courierCode}-tracking`;
}

type Estimates = Pick<
  NonNullable<Shipment['delivery']>,
  'estimatedDeliveryDate' | 'courierEstimatedDeliveryDate'
>;

export class ShipmentState {
  readonly trackingNumber: string;
  readonly shipmentId: string;
  readonly events: TrackingEvent[] = [];
  /** When the delivery is expected; a missing field is null in responses. */
  estimates: Estimates = {};
  /** Fields that a test has set; they replace the values that come from events and trackers. */
  fields: Partial<Shipment> = {};

  constructor(trackingNumber: string, shipmentId: string) {
    this.trackingNumber = trackingNumber;
    this.shipmentId = shipmentId;
  }

  get courierCodes(): string[] {
    return [...new Set(this.events.flatMap((event) => event.courierCode ?? []))];
  }

  add(input: EventInput, ids: SeededIds, atMs: number): TrackingEvent {
    const { courierCode = this.events.at(-1)?.courierCode ?? null } = input;
    const event: TrackingEvent = {
      eventId: input.eventId ?? ids.next('event'),
      trackingNumber: this.trackingNumber,
      eventTrackingNumber: this.trackingNumber,
      // The service writes UTC in whole seconds.
      occurrenceDatetime: new Date(atMs).toISOString().replace(/\.\d{3}Z$/, 'Z'),
      order: this.events.length,
      location: null,
      sourceCode: toSourceCode(courierCode),
      courierCode,
      ...fillStatus(input),
      ...input,
    };
    this.events.push(event);
    return event;
  }
}

function findSample(trackingNumber: string): KnownStatusMilestone | undefined {
  const [, name] = /^SHIP24_SAMPLE_([A-Z_]+)_\d{3}$/.exec(trackingNumber) ?? [];
  return STATUS_MILESTONES.find((milestone) => milestone.toUpperCase() === name);
}

/** The events that couriers know of a tracking number; each tracker of the number discovers them. */
export class KnownParcel extends ShipmentState {
  /** True once a test or a scenario has changed the parcel; then the option `play` starts no scenario for it. */
  hasScenario = false;
  /** True if the next tracker stops at its first results, because tracking was stopped before there was a tracker. */
  stopsNextTracker = false;
  /** The scenario of a sample number of the service; undefined for any other number (docs/service.md 1.14). */
  readonly sample: KnownStatusMilestone | undefined = findSample(this.trackingNumber);
  /** The events whose courier no test has named: those of scenarios, and events that took over their courier. */
  readonly #playedEvents = new Set<TrackingEvent>();

  override add(input: EventInput, ids: SeededIds, atMs: number, isPlayed = false): TrackingEvent {
    const previous = this.events.at(-1);
    const event = super.add(input, ids, atMs);
    const isTakenOver =
      input.courierCode === undefined && previous !== undefined && this.#playedEvents.has(previous);
    if (isPlayed || isTakenOver) this.#playedEvents.add(event);
    return event;
  }

  /**
   * Returns the known events as a tracker with these couriers shows them: the events of a scenario are then events of one of them.
   *
   * @param courierCodes - empty if the tracker names no courier
   */
  showEvents(events: readonly TrackingEvent[], courierCodes: readonly string[]): TrackingEvent[] {
    const [courierCode] = courierCodes;
    return events.map((event) => {
      const isShownAsItIs = courierCodes.some((code) => code === event.courierCode);
      if (courierCode === undefined || isShownAsItIs || !this.#playedEvents.has(event)) return event;
      return { ...event, courierCode, sourceCode: toSourceCode(courierCode) };
    });
  }
}

type Places = Pick<Shipment, 'originCountryCode' | 'destinationCountryCode'>;

/** Milestones that a courier can report late, after the delivery. */
const LATE_MILESTONES: readonly unknown[] = STATUS_MILESTONES.slice(
  0,
  STATUS_MILESTONES.indexOf('delivered'),
);

/**
 * Finds the event that decides the status of the shipment: the newest event, but a late scan does not undo a delivery
 * (docs/service.md 5.6). A later exception, such as a return, is assumed to undo it.
 */
function findDecisive(oldestFirst: readonly TrackingEvent[]): TrackingEvent | undefined {
  let decisive: TrackingEvent | undefined;
  for (const event of oldestFirst) {
    const isLate =
      decisive?.statusMilestone === 'delivered' && LATE_MILESTONES.includes(event.statusMilestone);
    if (!isLate) decisive = event;
  }
  return decisive;
}

/** Builds results without a tracker; the newest event comes first. */
export function buildResults(state: ShipmentState, places: Places, events = state.events): PerCallTracking {
  const oldestFirst = sortEvents(events);
  const decisive = findDecisive(oldestFirst);
  const findFirst = (milestone: string) =>
    oldestFirst.find((event) => event.statusMilestone === milestone)?.occurrenceDatetime ?? null;
  return {
    shipment: {
      shipmentId: state.shipmentId,
      statusCode: decisive?.statusCode ?? null,
      statusCategory: decisive?.statusCategory ?? null,
      statusMilestone: decisive?.statusMilestone ?? 'pending',
      originCountryCode: places.originCountryCode,
      destinationCountryCode: places.destinationCountryCode,
      trackingNumbers: [{ tn: state.trackingNumber }],
      recipient: null,
      ...state.fields,
      delivery: {
        estimatedDeliveryDate: null,
        courierEstimatedDeliveryDate: null,
        service: null,
        ...state.estimates,
        ...state.fields.delivery,
      },
    },
    events: oldestFirst.toReversed(),
    statistics: {
      timestamps: {
        infoReceivedDatetime: findFirst('info_received'),
        inTransitDatetime: findFirst('in_transit'),
        outForDeliveryDatetime: findFirst('out_for_delivery'),
        failedAttemptDatetime: findFirst('failed_attempt'),
        availableForPickupDatetime: findFirst('available_for_pickup'),
        exceptionDatetime: findFirst('exception'),
        deliveredDatetime: findFirst('delivered'),
      },
    },
  };
}

/** The types of a proof that has a file to download, with the ends of the names of these files (docs/service.md 8.6). */
const FILE_TYPES: ReadonlyMap<unknown, string> = new Map([
  ['application/pdf', 'pdf'],
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
]);
const PROOF_TEXTS: ReadonlyMap<unknown, string> = new Map([
  ['text/plain', 'Signed by the recipient'],
  ['text/html', '<p>Signed by the recipient</p>'],
]);

/** Builds a proof, by default one with a PDF. The content gets the text or the file that fits its type. */
export function buildProof(
  { trackingNumber, events }: ShipmentState,
  proof: ProofOfDelivery['data'] = {},
  courierCode = 'us-post',
): ProofOfDelivery['data'] {
  const { status = 'found' } = proof;
  const courier = events.at(-1)?.sourceCode ?? toSourceCode(courierCode);
  const type = proof.content?.type ?? 'application/pdf';
  const extension = FILE_TYPES.get(type);
  const downloadUrl =
    extension === undefined ? null : `https://tracking.test/proofs/${trackingNumber}.${extension}`;
  const content = { type, text: PROOF_TEXTS.get(type) ?? null, downloadUrl, ...proof.content };
  const isMissing = status === 'unavailable' || proof.content === null;
  return { status, courier, ...proof, content: isMissing ? null : content };
}

const HOUR_MS = 3_600_000;

/** The format of a step's time; real couriers use all of them (docs/service.md 2.5). */
type TimeStyle = 'china' | 'utc' | 'local' | 'date';

/** In hours after the start of the scenario: the service expects the delivery on that day, or the courier in that window. */
type ExpectedHours = number | readonly [from: number, to: number] | 'unknown';

type ScenarioStep = { readonly afterMs: number } & (
  | { readonly event: EventInput; readonly timeStyle: TimeStyle }
  | { readonly expectedHours: ExpectedHours }
  | { readonly stops: true }
);

export const BEIJING = { courierCode: 'cn-post', location: 'Beijing' };
export const SAN_RAFAEL = { courierCode: 'us-post', location: 'SAN RAFAEL, CA 94901' };

function step(
  hours: number,
  place: EventInput,
  timeStyle: TimeStyle,
  statusMilestone: KnownStatusMilestone,
  statusCode?: StatusCode,
  status: string | null = null,
): ScenarioStep {
  const ownStatus = statusCode === undefined ? {} : { statusCode, status };
  return { afterMs: hours * HOUR_MS, event: { ...place, statusMilestone, ...ownStatus }, timeStyle };
}

/** The webhook of the next event contains the new estimate. */
function expectDelivery(hours: number, expectedHours: ExpectedHours): ScenarioStep {
  return { afterMs: hours * HOUR_MS, expectedHours };
}

function stop(hours: number): ScenarioStep {
  return { afterMs: hours * HOUR_MS, stops: true };
}

const ROUTE: readonly ScenarioStep[] = [
  step(0, BEIJING, 'china', 'info_received'),
  expectDelivery(5, 100),
  step(5, BEIJING, 'china', 'in_transit', 'transit_handover', 'Accepted at the post office'),
  step(14, BEIJING, 'local', 'in_transit', 'transit_origin_country_departure', 'Left the country of origin'),
  expectDelivery(40, 76),
  step(40, SAN_RAFAEL, 'date', 'in_transit', 'destination_arrival', 'Arrived in the country of destination'),
];

function outForDelivery(hours: number): readonly ScenarioStep[] {
  return [expectDelivery(hours, [hours + 2, hours + 8]), step(hours, SAN_RAFAEL, 'utc', 'out_for_delivery')];
}

const OUT_FOR_DELIVERY = outForDelivery(72);
const FAILED_ATTEMPT = [expectDelivery(75, 99), step(75, SAN_RAFAEL, 'utc', 'failed_attempt')];

function delivery(hours: number): readonly ScenarioStep[] {
  return [...outForDelivery(hours), step(hours + 4, SAN_RAFAEL, 'utc', 'delivered'), stop(hours + 5)];
}

/**
 * The scenarios that `fake.play` can play. A sample number of the service has the history of the scenario of its milestone
 * (docs/service.md 1.14).
 */
export const scenarios = {
  /** No news; tracking goes on. */
  pending: [],
  /** Announced in San Rafael, because the courier of Beijing cannot be asked while `trackers.track` waits. */
  info_received: [step(0, SAN_RAFAEL, 'utc', 'info_received')],
  in_transit: ROUTE,
  out_for_delivery: [...ROUTE, ...OUT_FOR_DELIVERY],
  failed_attempt: [...ROUTE, ...OUT_FOR_DELIVERY, ...FAILED_ATTEMPT],
  /** A delivery fails, and the shipment is taken to a pickup point. */
  available_for_pickup: [
    ...ROUTE,
    ...OUT_FOR_DELIVERY,
    ...FAILED_ATTEMPT,
    step(79, SAN_RAFAEL, 'utc', 'available_for_pickup'),
  ],
  /** Posted in Beijing, delivered in San Rafael three days later; then tracking stops. */
  delivered: [...ROUTE, ...delivery(72)],
  /** A delivery fails, then the shipment is lost; then tracking stops. */
  exception: [
    ...ROUTE,
    ...OUT_FOR_DELIVERY,
    ...FAILED_ATTEMPT,
    expectDelivery(120, 'unknown'),
    step(120, SAN_RAFAEL, 'utc', 'exception', 'exception_lost', 'The shipment is lost'),
    stop(121),
  ],
  /** Held by customs for two days, cleared and delivered; then tracking stops. */
  customs: [
    ...ROUTE,
    step(44, SAN_RAFAEL, 'local', 'in_transit', 'customs_received', 'Handed to customs'),
    expectDelivery(48, 148),
    step(
      48,
      SAN_RAFAEL,
      'local',
      'in_transit',
      'customs_exception',
      'Held by customs: documents are missing',
    ),
    expectDelivery(96, 124),
    step(96, SAN_RAFAEL, 'local', 'in_transit', 'customs_cleared', 'Cleared by customs'),
    ...delivery(120),
  ],
  /** No courier ever knows the number; after 30 days the service gives up. */
  'never-found': [stop(720)],
} satisfies Record<KnownStatusMilestone | 'customs' | 'never-found', readonly ScenarioStep[]>;

/** The name of a scenario that `fake.play` knows. */
export type PlayName = keyof typeof scenarios;

// Safe cast: the keys of an object literal are exactly its `keyof`.
export const PLAY_NAMES = Object.keys(scenarios) as readonly PlayName[];

export function formatTime(atMs: number, style: TimeStyle = 'utc'): string {
  const offsetMs = style === 'china' ? 8 * HOUR_MS : 0;
  const text = new Date(atMs + offsetMs).toISOString().slice(0, 19);
  if (style === 'date') return text.slice(0, 10);
  return text + { china: '+08:00', utc: 'Z', local: '' }[style];
}

/** Writes an estimate: a day as a date, a window as local times. */
export function buildEstimates(startMs: number, expectedHours: ExpectedHours): Estimates {
  if (expectedHours === 'unknown') return {};
  const write = (hours: number, style: TimeStyle) => formatTime(startMs + hours * HOUR_MS, style);
  if (typeof expectedHours === 'number') return { estimatedDeliveryDate: write(expectedHours, 'date') };
  const [from, to] = expectedHours;
  return { courierEstimatedDeliveryDate: { from: write(from, 'local'), to: write(to, 'local') } };
}

// Specification: service.md 1, 2.4, 6; public contract, "Webhooks"
import type { EndpointName } from '../../endpoints.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import type { TrackerRequest } from '../../schemas/tracker.ts';
import {
  EVENTS_TOPIC,
  type EventsDelivery,
  PROOF_OF_DELIVERY_TOPIC,
  type ProofOfDelivery,
} from '../../schemas/webhook.ts';
import type { RecordedRequest, ResolvedOptions } from '../options.ts';
import { type PlayName, stepsOf, writeTime } from '../shipments/plays.ts';
import { type EventInput, resultsView, ShipmentState } from '../shipments/shipment.ts';
import { type PushItem, WebhookQueue } from '../webhooks/queue.ts';
import { canRespond, defaultCouriers, type FakeCourier } from './couriers.ts';
import { Failures } from './failures.ts';
import { rejection, ServiceError } from './http.ts';
import { validatedTrackerInput } from './input.ts';
import { RateLimits } from './rate-limits.ts';
import { SeededIds } from './seeded.ts';
import { type TrackerState, TrackerStore, toPayload, webhookTrackerView } from './trackers.ts';

/** What a webhook says besides its metadata and its tracker. */
type PushContent = Pick<EventsDelivery, 'shipment' | 'events' | 'statistics'> | Pick<ProofOfDelivery, 'data'>;

/** The same content as a message of its own. */
function replayed<Item extends PushItem>(item: Item, generatedAt: string, messageId: string): Item {
  return { ...item, metadata: { ...item.metadata, generatedAt, messageId } };
}

/**
 * What is going to happen, in order. Nothing here holds a timer: time passes when somebody looks,
 * so the fake obeys any clock and never keeps a process alive.
 */
export class Timeline {
  /** Next first. */
  readonly #actions: { readonly atMs: number; readonly run: (atMs: number) => void }[] = [];

  /** Plans an action; actions of the same instant run in the order they were planned. */
  schedule(atMs: number, run: (atMs: number) => void): void {
    const before = this.#actions.findLastIndex((action) => action.atMs <= atMs);
    this.#actions.splice(before + 1, 0, { atMs, run });
  }

  /** Runs everything that is due, each action at its own instant. */
  catchUp(nowMs: number): void {
    for (let next = this.#actions[0]; next !== undefined && next.atMs <= nowMs; next = this.#actions[0]) {
      this.#actions.shift();
      next.run(next.atMs);
    }
  }
}

/** Everything one fake knows; `reset` makes a new one. */
export class FakeState {
  readonly options: ResolvedOptions;
  readonly ids: SeededIds;
  readonly trackers = new TrackerStore();
  readonly webhooks: WebhookQueue;
  readonly couriers: FakeCourier[] = defaultCouriers();
  readonly limits: RateLimits | undefined;
  readonly failures = new Failures();
  /** Oldest first. */
  readonly requests: RecordedRequest[] = [];
  readonly #timeline = new Timeline();
  readonly #shipments = new Map<string, ShipmentState>();
  #playsStarted = 0;
  bulkCreated = 0;
  searches = 0;

  constructor(options: ResolvedOptions) {
    this.options = options;
    this.ids = new SeededIds(options.seed);
    this.webhooks = new WebhookQueue(() => this.now(), options.historyLimit);
    this.limits = options.limits === false ? undefined : new RateLimits(options.limits, options.limitWindow);
  }

  /** The fake's time; everything that was due until then has happened. */
  now(): number {
    const nowMs = this.options.now();
    this.#timeline.catchUp(nowMs);
    return nowMs;
  }

  /** Remembers a request, and forgets the oldest one when there are too many. */
  remember(request: RecordedRequest): void {
    this.requests.push(request);
    if (this.requests.length > this.options.historyLimit) this.requests.shift();
  }

  /** What couriers know of a number; made when first asked for. */
  shipment(trackingNumber: string): ShipmentState {
    const number = trackingNumber.toUpperCase();
    const shipment = this.#shipments.get(number) ?? new ShipmentState(number, this.ids);
    this.#shipments.set(number, shipment);
    return shipment;
  }

  /** What couriers know of a number that a caller asks about: a play of the options starts now. */
  askedShipment(trackingNumber: string): ShipmentState {
    const shipment = this.shipment(trackingNumber);
    const { plays, speed } = this.options;
    const play = plays[this.#playsStarted % plays.length];
    if (play === undefined || shipment.isScripted) return shipment;
    this.#playsStarted += 1;
    this.play(shipment, play, speed);
    return shipment;
  }

  /**
   * Creates a tracker or reuses one.
   *
   * @throws ServiceError `tracker_conflict` (400), `quota_limit_reached` (403)
   */
  createTracker(input: TrackerRequest, endpoint: EndpointName): { tracker: TrackerState; isNew: boolean } {
    const createdAtMs = this.now();
    const payload = toPayload(input);
    const reusable = this.trackers.findReusable(payload, endpoint === 'trackers.track');
    if (reusable !== undefined) return { tracker: reusable, isNew: false };
    if (this.trackers.size >= this.options.trackerQuota)
      throw rejection(403, 'quota_limit_reached', 'The quota is used up.');
    const trackerId = this.ids.next('tracker');
    const shipment = this.askedShipment(payload.trackingNumber);
    const tracker = { ...payload, trackerId, createdAtMs, shipment, isSubscribed: true, isFetched: false };
    this.trackers.add(tracker);
    const fetchAtMs = createdAtMs + this.options.resultsDelayMs;
    this.#timeline.schedule(fetchAtMs, (atMs) => this.fetchResults(tracker, atMs));
    return { tracker, isNew: true };
  }

  /** How many of the creation requests would make a new tracker; rejected ones make none. */
  countNew(inputs: readonly unknown[]): number {
    const payloads = new Set<string>();
    for (const input of inputs) {
      try {
        const payload = toPayload(validatedTrackerInput(this.now(), input));
        if (this.trackers.findReusable(payload) === undefined) payloads.add(JSON.stringify(payload));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
      }
    }
    return payloads.size;
  }

  /** Changes a tracker; a hint that a courier was missing brings its results. */
  updateTracker(tracker: TrackerState, changes: Partial<TrackerState>): void {
    const hadEvents = this.visibleEvents(tracker).length > 0;
    this.trackers.change(tracker, changes);
    if (!hadEvents) this.#pushEvents(tracker, this.visibleEvents(tracker), this.now());
  }

  /** The couriers respond for a tracker for the first time. */
  fetchResults(tracker: TrackerState, atMs: number): void {
    if (tracker.isFetched) return;
    tracker.isFetched = true;
    this.#pushEvents(tracker, this.visibleEvents(tracker), atMs);
  }

  /** The events that a tracker shows. */
  visibleEvents(tracker: TrackerState): readonly TrackingEvent[] {
    return tracker.isFetched && canRespond(this.couriers, tracker) ? tracker.shipment.events : [];
  }

  /** New events of a shipment: every tracker of it has them at once, and pushes them. */
  addEvents(shipment: ShipmentState, inputs: readonly EventInput[], atMs: number): void {
    const events = inputs.map((input) => shipment.add(input, this.ids, atMs));
    for (const tracker of this.#trackersOf(shipment)) {
      if (!tracker.isFetched) this.fetchResults(tracker, atMs);
      else if (canRespond(this.couriers, tracker)) this.#pushEvents(tracker, events, atMs);
    }
  }

  /** The service gives a shipment up. */
  stopTracking(shipment: ShipmentState, atMs: number): void {
    for (const tracker of this.#trackersOf(shipment)) this.fetchResults(tracker, atMs);
    shipment.isStopped = true;
  }

  /** Plans the steps of a play; their times are written as if the play ended just when its last step is seen. */
  play(shipment: ShipmentState, name: PlayName, speed: number): void {
    shipment.isScripted = true;
    const startMs = this.now();
    const steps = stepsOf(name);
    const lengthMs = steps.at(-1)?.afterMs ?? 0;
    const writtenStartMs = startMs + lengthMs / speed - lengthMs;
    for (const { afterMs, event, timeStyle } of steps) {
      this.#timeline.schedule(startMs + afterMs / speed, (atMs) => {
        if (event === 'stop') return this.stopTracking(shipment, atMs);
        const occurrenceDatetime = writeTime(writtenStartMs + afterMs, timeStyle);
        this.addEvents(shipment, [{ occurrenceDatetime, ...event }], atMs);
      });
    }
    this.now();
  }

  /** Queues a proof of delivery for every tracker of a shipment. */
  pushProof(shipment: ShipmentState, data: ProofOfDelivery['data'], atMs: number): void {
    for (const tracker of this.#trackersOf(shipment))
      this.#push(tracker, PROOF_OF_DELIVERY_TOPIC, atMs, { data });
  }

  /**
   * Queues everything again that was pushed for a tracker; what still waits for its first time is not repeated.
   *
   * @returns how many pushes that are
   */
  resend(trackerId: string): number {
    const generatedAt = new Date(this.now()).toISOString();
    const waiting = new Set(this.webhooks.pending);
    const earlier = this.webhooks.history.filter(
      (push) => push.trackerId === trackerId && !push.isReplay && !waiting.has(push),
    );
    for (const { item } of earlier)
      this.webhooks.add(trackerId, replayed(item, generatedAt, this.ids.next('message')), true);
    return earlier.length;
  }

  #trackersOf(shipment: ShipmentState): readonly TrackerState[] {
    const trackers = this.trackers.withTrackingNumber(shipment.trackingNumber);
    return trackers.filter((tracker) => tracker.shipment === shipment);
  }

  #pushEvents(tracker: TrackerState, events: readonly TrackingEvent[], atMs: number): void {
    if (events.length === 0) return;
    const results = resultsView(tracker.shipment, tracker, tracker.shipment.events);
    this.#push(tracker, EVENTS_TOPIC, atMs, { ...results, events: [...events].reverse() });
  }

  /** Queues a webhook where the account has one and the tracker is active. */
  #push(tracker: TrackerState, topic: string, atMs: number, content: PushContent): void {
    if (!this.options.webhooks || !tracker.isSubscribed) return;
    const metadata = {
      generatedAt: new Date(atMs).toISOString(),
      messageId: this.ids.next('message'),
      topic,
    };
    this.webhooks.add(tracker.trackerId, { metadata, tracker: webhookTrackerView(tracker), ...content });
  }
}

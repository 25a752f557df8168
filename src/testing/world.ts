import type { EndpointName } from '../endpoints.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import type { TrackerInput } from '../schemas/tracker.ts';
import { EVENTS_TOPIC, PROOF_OF_DELIVERY_TOPIC, type ProofOfDelivery } from '../schemas/webhook.ts';
import type { ResolvedOptions } from './options.ts';
import { canAnswer, defaultCouriers, type FakeCourier } from './service/couriers.ts';
import { RateLimits } from './service/rate-limits.ts';
import { ServiceError } from './service/replies.ts';
import { SeededIds } from './service/seeded.ts';
import { Timeline } from './service/timeline.ts';
import { validatedTrackerInput } from './service/validate.ts';
import { shipmentView, statisticsView, webhookTrackerView } from './service/views.ts';
import type { EventInput } from './shipments/event-defaults.ts';
import { type PlayName, stepsOf, writeTime } from './shipments/plays.ts';
import { ShipmentState } from './shipments/shipment-state.ts';
import { findReusable } from './trackers/duplicate-matching.ts';
import { type TrackerState, toPayload } from './trackers/tracker-state.ts';
import { TrackerStore } from './trackers/tracker-store.ts';
import { type PushItem, WebhookQueue } from './webhooks/webhook-queue.ts';

/** The same news as a message of its own. */
function replayed<Item extends PushItem>(item: Item, generatedAt: string, messageId: string): Item {
  return { ...item, metadata: { ...item.metadata, generatedAt, messageId } };
}

/** Everything one fake knows; `reset` makes a new one. */
export class World {
  readonly options: ResolvedOptions;
  readonly ids: SeededIds;
  readonly trackers = new TrackerStore();
  readonly timeline = new Timeline();
  readonly webhooks: WebhookQueue;
  readonly couriers: FakeCourier[] = defaultCouriers();
  readonly limits: RateLimits | undefined;
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
    this.timeline.catchUp(nowMs);
    return nowMs;
  }

  /** What couriers know of a number; made when first asked for. */
  shipment(trackingNumber: string): ShipmentState {
    const number = trackingNumber.toUpperCase();
    const known = this.#shipments.get(number);
    if (known !== undefined) return known;
    const shipment = new ShipmentState(number, this.ids);
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
   * Creates a tracker or reuses one (service.md 2.4).
   *
   * @throws ServiceError `tracker_conflict` (400), `quota_limit_reached` (403)
   */
  createTracker(input: TrackerInput, endpoint: EndpointName): { tracker: TrackerState; isNew: boolean } {
    const nowMs = this.now();
    const payload = toPayload(input);
    const candidates = this.trackers.candidates(payload);
    const reusable = findReusable(payload, candidates, endpoint === 'trackers.track');
    if (reusable !== undefined) return { tracker: reusable, isNew: false };
    if (this.trackers.size >= this.options.trackerQuota)
      throw new ServiceError(403, { code: 'quota_limit_reached', message: 'The quota is used up.' });
    const trackerId = this.ids.next('tracker');
    const tracker = { ...payload, trackerId, createdAtMs: nowMs, isSubscribed: true, isFetched: false };
    this.askedShipment(payload.trackingNumber);
    this.trackers.add(tracker);
    this.timeline.schedule(nowMs + this.options.resultsDelayMs, (atMs) => this.fetchResults(trackerId, atMs));
    return { tracker, isNew: true };
  }

  /** How many of the creation requests would make a new tracker; refused ones make none. */
  countNew(inputs: readonly unknown[]): number {
    const payloads = new Set<string>();
    for (const input of inputs) {
      try {
        const payload = toPayload(validatedTrackerInput(input, this.now()));
        if (findReusable(payload, this.trackers.candidates(payload), false) === undefined)
          payloads.add(JSON.stringify(payload));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
      }
    }
    return payloads.size;
  }

  /** Changes a tracker; a hint that a courier was missing brings its results. */
  updateTracker(tracker: TrackerState, changes: Partial<TrackerState>): TrackerState {
    const hadEvents = this.visibleEvents(tracker).length > 0;
    const changed = this.trackers.change(tracker.trackerId, changes);
    if (!hadEvents) this.#queueEvents(changed, this.visibleEvents(changed), this.now());
    return changed;
  }

  /** The couriers answer for a tracker for the first time. */
  fetchResults(trackerId: string, atMs: number): void {
    const tracker = this.trackers.get(trackerId);
    if (tracker.isFetched) return;
    const fetched = this.trackers.change(trackerId, { isFetched: true });
    this.#queueEvents(fetched, this.visibleEvents(fetched), atMs);
  }

  /** The events that a tracker shows. */
  visibleEvents(tracker: TrackerState): readonly TrackingEvent[] {
    const canShow = tracker.isFetched && canAnswer(this.couriers, tracker);
    return canShow ? this.shipment(tracker.trackingNumber).events : [];
  }

  /** Couriers tell of new events: every tracker of the number has them at once, and pushes them. */
  addEvents(shipment: ShipmentState, inputs: readonly EventInput[], atMs: number): TrackingEvent[] {
    const events = inputs.map((input) => shipment.add(input, this.ids, atMs));
    for (const tracker of this.trackers.withTrackingNumber(shipment.trackingNumber)) {
      if (!tracker.isFetched) this.fetchResults(tracker.trackerId, atMs);
      else if (canAnswer(this.couriers, tracker)) this.#queueEvents(tracker, events, atMs);
    }
    return events;
  }

  /** The service gives a number up. */
  stopTracking(shipment: ShipmentState, atMs: number): void {
    for (const { trackerId } of this.trackers.withTrackingNumber(shipment.trackingNumber))
      this.fetchResults(trackerId, atMs);
    shipment.isStopped = true;
  }

  /** Plans the steps of a play; their times are told as if the play ended just when its last step is seen. */
  play(shipment: ShipmentState, name: PlayName, speed: number): void {
    shipment.isScripted = true;
    const startMs = this.now();
    const steps = stepsOf(name);
    const lengthMs = steps.at(-1)?.afterMs ?? 0;
    const storyStartMs = startMs + lengthMs / speed - lengthMs;
    for (const { afterMs, event, timeStyle, stopsTracking } of steps) {
      this.timeline.schedule(startMs + afterMs / speed, (atMs) => {
        const occurrenceDatetime = writeTime(storyStartMs + afterMs, timeStyle);
        if (event !== undefined) this.addEvents(shipment, [{ occurrenceDatetime, ...event }], atMs);
        if (stopsTracking) this.stopTracking(shipment, atMs);
      });
    }
    this.now();
  }

  /** Queues a proof of delivery for every tracker of a number. */
  pushProof(shipment: ShipmentState, data: ProofOfDelivery['data'], atMs: number): void {
    for (const tracker of this.trackers.withTrackingNumber(shipment.trackingNumber)) {
      if (!this.options.webhooks || !tracker.isSubscribed) continue;
      const metadata = this.#metadata(PROOF_OF_DELIVERY_TOPIC, atMs);
      this.webhooks.add(tracker.trackerId, { metadata, tracker: webhookTrackerView(tracker), data });
    }
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

  #metadata(topic: string, atMs: number) {
    return { generatedAt: new Date(atMs).toISOString(), messageId: this.ids.next('message'), topic };
  }

  #queueEvents(tracker: TrackerState, events: readonly TrackingEvent[], atMs: number): void {
    if (events.length === 0 || !this.options.webhooks || !tracker.isSubscribed) return;
    const shipment = this.shipment(tracker.trackingNumber);
    this.webhooks.add(tracker.trackerId, {
      metadata: this.#metadata(EVENTS_TOPIC, atMs),
      tracker: webhookTrackerView(tracker),
      shipment: shipmentView(shipment, tracker, shipment.events),
      events: [...events].reverse(),
      statistics: statisticsView(shipment.events),
    });
  }
}

import { EVENTS_TOPIC } from '../../common/event-keys.ts';
import { ConfigurationError } from '../../errors.ts';
import { sortEvents } from '../../events/order.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import { DAY_MS, type TrackerRequest, type TrackerUpdateRequest } from '../../schemas/tracker.ts';
import type { Shipment } from '../../schemas/tracking.ts';
import { type EventsMessage, PROOF_OF_DELIVERY_TOPIC, type ProofOfDelivery } from '../../schemas/webhook.ts';
import type { RecordedRequest, ResolvedOptions } from '../options.ts';
import {
  buildEstimates,
  buildProof,
  buildResults,
  type EventInput,
  formatTime,
  KnownParcel,
  type PlayName,
  SeededIds,
  ShipmentState,
  scenarios,
} from '../shipments/shipment.ts';
import { WebhookQueue } from '../webhooks/queue.ts';
import { Failures } from './failures.ts';
import { RateLimits, rejection, ServiceError } from './http.ts';
import { Schedule } from './schedule.ts';
import {
  buildWebhookTracker,
  canRespond,
  createCouriers,
  type FakeCourier,
  getCouriers,
  isTracked,
  mayDiscover,
  type StoredTracker,
  type TrackerState,
  TrackerStore,
  toPayload,
} from './trackers.ts';

/** The service only says "a long time without events" (docs/service.md 5.1); the number of days is our choice. */
const TRACKED_AFTER_EVENT_MS = 90 * DAY_MS;
/** Tracking goes on after a delivery, so that a proof of delivery can still come. */
const TRACKED_AFTER_DELIVERY_MS = 14 * DAY_MS;

type PushContent = Pick<EventsMessage, 'shipment' | 'events' | 'statistics'> | Pick<ProofOfDelivery, 'data'>;

/** The trackers that a test changes: all trackers of a number, or one tracker. */
export interface Target {
  readonly parcel: KnownParcel;
  readonly tracker?: TrackerState | undefined;
}

export class FakeState {
  readonly options: ResolvedOptions;
  readonly ids: SeededIds;
  readonly trackers = new TrackerStore<TrackerState>();
  readonly webhooks: WebhookQueue;
  readonly couriers: FakeCourier[] = createCouriers();
  readonly limits: RateLimits | undefined;
  readonly failures = new Failures();
  readonly requests: RecordedRequest[] = [];
  /** Planned actions. They run when the fake reads its clock, so that it follows any clock and never keeps a process alive. */
  readonly #schedule = new Schedule();
  readonly #parcels = new Map<string, KnownParcel>();
  #scenariosStarted = 0;
  searches = 0;

  constructor(options: ResolvedOptions) {
    this.options = options;
    this.ids = new SeededIds(options.seed);
    this.webhooks = new WebhookQueue(() => this.now(), options.historyLimit);
    this.limits = options.limits === false ? undefined : new RateLimits(options.limits, options.limitWindow);
  }

  now(): number {
    const nowMs = this.options.now();
    for (
      let action = this.#schedule.takeDue(nowMs);
      action !== undefined;
      action = this.#schedule.takeDue(nowMs)
    )
      action.run(action.atMs);
    return nowMs;
  }

  getParcel(trackingNumber: string): KnownParcel {
    const key = trackingNumber.toUpperCase();
    const parcel = this.#parcels.get(key) ?? new KnownParcel(key, this.ids.next('shipment'));
    this.#parcels.set(key, parcel);
    return parcel;
  }

  /**
   * Returns what couriers know of a number. The first call for a number starts the next scenario of the option `play`, or adds the
   * history of a sample number.
   */
  askCouriers(trackingNumber: string): KnownParcel {
    const parcel = this.getParcel(trackingNumber);
    if (parcel.hasScenario) return parcel;
    const { play: names, speed } = this.options;
    const name = names[this.#scenariosStarted % names.length];
    if (parcel.sample !== undefined) {
      this.startScenario(parcel, parcel.sample, Number.POSITIVE_INFINITY);
    } else if (name !== undefined) {
      this.#scenariosStarted += 1;
      this.startScenario(parcel, name, speed);
    }
    return parcel;
  }

  /** Refuses a request that needs more trackers than the quota has left, before any is created (docs/service.md 7.9). */
  checkQuota(inputs: readonly TrackerRequest[]): void {
    const { perShipment } = this.options.plans;
    const left = perShipment ? perShipment.quota - this.trackers.size : Number.POSITIVE_INFINITY;
    if (inputs.length > left && this.#countNewTrackers(inputs) > left)
      throw rejection(403, 'quota_limit_reached', 'The quota is used up.');
  }

  #countNewTrackers(inputs: readonly TrackerRequest[]): number {
    const planned = new TrackerStore<StoredTracker>();
    for (const input of inputs) {
      const payload = toPayload(input);
      try {
        const reusable = this.trackers.findReusable(payload) ?? planned.findReusable(payload);
        if (reusable === undefined)
          planned.add({ ...payload, trackerId: String(planned.size), isSubscribed: true });
      } catch (error) {
        // An input in conflict creates no tracker.
        if (!(error instanceof ServiceError)) throw error;
      }
    }
    return planned.size;
  }

  createTracker(input: TrackerRequest, isSynchronous = false): { tracker: TrackerState; isNew: boolean } {
    const createdAtMs = this.now();
    const payload = toPayload(input);
    const reusable = this.trackers.findReusable(payload, isSynchronous);
    if (reusable !== undefined) return { tracker: reusable, isNew: false };
    this.checkQuota([input]);
    const parcel = this.askCouriers(payload.trackingNumber);
    const tracker: TrackerState = {
      ...payload,
      shipment: new ShipmentState(payload.trackingNumber, parcel.shipmentId),
      trackerId: this.ids.next('tracker'),
      createdAtMs,
      isSubscribed: true,
      isFetched: false,
      trackedUntilMs: createdAtMs + TRACKED_AFTER_EVENT_MS,
      generatedAtMs: Number.NEGATIVE_INFINITY,
    };
    this.trackers.add(tracker);
    this.#scheduleFetch(tracker, createdAtMs);
    return { tracker, isNew: true };
  }

  /** Changes a tracker. Results come at once if the patch adds a field that its couriers require. */
  updateTracker(tracker: TrackerState, patch: TrackerUpdateRequest): void {
    const nowMs = this.now();
    const { isSubscribed: wasSubscribed } = tracker;
    const lackedHint = tracker.isFetched && !canRespond(this.couriers, tracker);
    this.trackers.update(tracker, patch);
    if (wasSubscribed && !tracker.isSubscribed) tracker.trackedUntilMs = nowMs;
    if (!wasSubscribed && tracker.isSubscribed) {
      tracker.trackedUntilMs = nowMs + TRACKED_AFTER_EVENT_MS;
      this.#scheduleFetch(tracker, nowMs);
    }
    if (lackedHint) this.#discover(tracker, this.getParcel(tracker.trackingNumber).events, nowMs);
  }

  #scheduleFetch(tracker: TrackerState, nowMs: number): void {
    this.#schedule.add(nowMs + this.options.resultsDelayMs, (atMs) => this.fetchResults(tracker, atMs));
  }

  fetchResults(tracker: TrackerState, atMs: number): void {
    if (tracker.isFetched || !isTracked(tracker, atMs)) return;
    tracker.isFetched = true;
    const parcel = this.getParcel(tracker.trackingNumber);
    tracker.shipment.fields = { ...parcel.fields, ...tracker.shipment.fields };
    this.#discover(tracker, parcel.events, atMs);
    if (parcel.stopsNextTracker) tracker.trackedUntilMs = atMs;
    // Every tracker of a sample number has the same history.
    parcel.stopsNextTracker &&= parcel.sample !== undefined;
  }

  /** @param isPlayed - true for the events of a scenario */
  addEvents(
    { parcel, tracker }: Target,
    inputs: readonly EventInput[],
    atMs: number,
    isPlayed = false,
  ): void {
    if (tracker !== undefined) {
      this.fetchResults(tracker, atMs);
      if (!isTracked(tracker, atMs)) return;
      const shown = inputs.filter((input) => mayDiscover(tracker, input));
      const added = shown.map((input) => tracker.shipment.add(input, this.ids, atMs));
      this.#pushEvents(tracker, added, atMs);
      return;
    }
    const events = inputs.map((input) => parcel.add(input, this.ids, atMs, isPlayed));
    for (const each of this.findTrackers({ parcel })) {
      if (each.isFetched) this.#discover(each, events, atMs);
      else this.fetchResults(each, atMs);
    }
  }

  setFields(target: Target, fields: Partial<Shipment>, nowMs: number): void {
    const { parcel, tracker } = target;
    const trackers = this.findTrackers(target);
    const tracked = trackers.filter((each) => isTracked(each, nowMs));
    if (trackers.length > 0 && tracked.length === 0)
      throw new ConfigurationError(
        `Tracking of ${parcel.trackingNumber} has stopped, so \`update\` changes nothing; call \`update\` before it stops ` +
          '(a scenario stops it an hour after its last event, and with `speed: Infinity` at once)',
      );
    if (tracker === undefined) parcel.fields = { ...parcel.fields, ...fields };
    for (const { shipment } of tracked) shipment.fields = { ...shipment.fields, ...fields };
  }

  stopTracking(target: Target, atMs: number): void {
    const trackers = this.findTrackers(target);
    if (trackers.length === 0) target.parcel.stopsNextTracker = true;
    for (const tracker of trackers) {
      this.fetchResults(tracker, atMs);
      tracker.trackedUntilMs = atMs;
    }
  }

  /**
   * Plans the steps of a scenario. The times written in the events are as far apart as at normal speed. They are counted back from
   * the real time of the last step, so a faster scenario writes no time in the future.
   */
  startScenario(parcel: KnownParcel, name: PlayName, speed: number): void {
    parcel.hasScenario = true;
    const startMs = this.now();
    const steps = scenarios[name];
    const lengthMs = steps.at(-1)?.afterMs ?? 0;
    const writtenStartMs = startMs + lengthMs / speed - lengthMs;
    for (const step of steps) {
      this.#schedule.add(startMs + step.afterMs / speed, (atMs) => {
        if ('stops' in step) return this.stopTracking({ parcel }, atMs);
        if ('expectedHours' in step) {
          parcel.estimates = buildEstimates(writtenStartMs, step.expectedHours);
          return;
        }
        const occurrenceDatetime = formatTime(writtenStartMs + step.afterMs, step.timeStyle);
        this.addEvents({ parcel }, [{ occurrenceDatetime, ...step.event }], atMs, true);
      });
    }
    this.now();
  }

  pushProof(target: Target, proof: ProofOfDelivery['data'], atMs: number): void {
    for (const tracker of this.findTrackers(target).filter((each) => isTracked(each, atMs))) {
      const [courierCode] = getCouriers(tracker);
      const data = buildProof(tracker.shipment, proof, courierCode);
      this.#push(tracker, PROOF_OF_DELIVERY_TOPIC, atMs, { data });
    }
  }

  resend(trackerId: string): number {
    const waiting = new Set(this.webhooks.pending);
    const earlier = this.webhooks.history.filter(
      (push) => push.trackerId === trackerId && !push.isReplay && !waiting.has(push),
    );
    for (const { item } of earlier) this.webhooks.add(trackerId, item, true);
    return earlier.flatMap(({ item }) => ('events' in item ? item.events : [])).length;
  }

  findTrackers({ parcel, tracker }: Target): readonly TrackerState[] {
    return tracker === undefined ? this.trackers.findByTrackingNumber(parcel.trackingNumber) : [tracker];
  }

  #discover(tracker: TrackerState, known: readonly TrackingEvent[], atMs: number): void {
    if (!isTracked(tracker, atMs) || !canRespond(this.couriers, tracker)) return;
    const parcel = this.getParcel(tracker.trackingNumber);
    const shown = parcel.showEvents(known, getCouriers(tracker));
    const events = shown.filter((event) => mayDiscover(tracker, event));
    tracker.shipment.events.push(...events);
    tracker.shipment.estimates = parcel.estimates;
    this.#pushEvents(tracker, events, atMs);
  }

  #pushEvents(tracker: TrackerState, events: readonly TrackingEvent[], atMs: number): void {
    if (events.length === 0) return;
    const results = buildResults(tracker.shipment, tracker);
    const isDelivered = results.shipment?.statusMilestone === 'delivered';
    tracker.trackedUntilMs = atMs + (isDelivered ? TRACKED_AFTER_DELIVERY_MS : TRACKED_AFTER_EVENT_MS);
    const oldestFirst = sortEvents(events);
    const items = this.options.groupEvents ? [oldestFirst.reverse()] : oldestFirst.map((event) => [event]);
    for (const item of items) this.#push(tracker, EVENTS_TOPIC, atMs, { ...results, events: item });
  }

  #push(tracker: TrackerState, topic: string, atMs: number, content: PushContent): void {
    if (!this.options.webhooks) return;
    // Each push of a tracker is generated later than the push before, so that receivers can tell which is newer.
    tracker.generatedAtMs = Math.max(atMs, tracker.generatedAtMs + 1);
    const generatedAt = new Date(tracker.generatedAtMs).toISOString();
    // A redelivery and a resend send the same item, so they keep its `messageId` (docs/service.md 8.13).
    const metadata = { generatedAt, messageId: this.ids.next('message'), topic };
    this.webhooks.add(tracker.trackerId, { metadata, tracker: buildWebhookTracker(tracker), ...content });
  }
}

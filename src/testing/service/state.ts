// Specification: service.md 1, 2.4, 6; public contract, "Webhooks"
import type { EndpointName } from '../../endpoints.ts';
import type { TrackingEvent } from '../../schemas/event.ts';
import type { TrackerRequest, TrackerUpdateRequest } from '../../schemas/tracker.ts';
import {
  EVENTS_TOPIC,
  type EventsDelivery,
  PROOF_OF_DELIVERY_TOPIC,
  type ProofOfDelivery,
} from '../../schemas/webhook.ts';
import { sortEvents } from '../../webhooks/events.ts';
import type { RecordedRequest, ResolvedOptions } from '../options.ts';
import { type PlayName, stepsOf, writeTime } from '../shipments/plays.ts';
import {
  type EventInput,
  NumberState,
  resultsView,
  type ShipmentInput,
  signatureOf,
} from '../shipments/shipment.ts';
import { WebhookQueue } from '../webhooks/queue.ts';
import { canRespond, defaultCouriers, type FakeCourier } from './couriers.ts';
import { Failures } from './failures.ts';
import { rejection, ServiceError } from './http.ts';
import { validatedTrackerInput } from './input.ts';
import { RateLimits } from './rate-limits.ts';
import { SeededIds } from './seeded.ts';
import {
  isOfItsCourier,
  isTracked,
  SHIPMENT_FIELDS,
  type TrackerState,
  TrackerStore,
  toPayload,
  webhookTrackerView,
} from './trackers.ts';

const DAY_MS = 86_400_000;
/** How long the service goes on after an event; "a long time" is all that the contract says. */
const TRACKED_AFTER_EVENT_MS = 90 * DAY_MS;
/** Long enough for a proof of delivery. */
const TRACKED_AFTER_DELIVERY_MS = 14 * DAY_MS;

/** What a webhook says besides its metadata and its tracker. */
type PushContent = Pick<EventsDelivery, 'shipment' | 'events' | 'statistics'> | Pick<ProofOfDelivery, 'data'>;

/**
 * What is going to happen, in order. Nothing here holds a timer: time passes when somebody looks,
 * so the fake obeys any clock and never keeps a process alive.
 */
export class Timeline {
  readonly #actions: { readonly atMs: number; readonly run: (atMs: number) => void }[] = [];

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

/** Whom a test speaks to: all trackers of a number, or one of them. */
export interface Addressee {
  readonly number: NumberState;
  readonly only?: TrackerState | undefined;
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
  readonly requests: RecordedRequest[] = [];
  readonly #timeline = new Timeline();
  readonly #numbers = new Map<string, NumberState>();
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

  number(trackingNumber: string): NumberState {
    const key = trackingNumber.toUpperCase();
    const number = this.#numbers.get(key) ?? new NumberState(key, this.ids);
    this.#numbers.set(key, number);
    return number;
  }

  /** What couriers know of a number that a caller asks about: a play of the options starts now. */
  askedNumber(trackingNumber: string): NumberState {
    const number = this.number(trackingNumber);
    const { play: plays, speed } = this.options;
    const play = plays[this.#playsStarted % plays.length];
    if (play === undefined || number.isScripted) return number;
    this.#playsStarted += 1;
    this.play(number, play, speed);
    return number;
  }

  createTracker(input: TrackerRequest, endpoint: EndpointName): { tracker: TrackerState; isNew: boolean } {
    const createdAtMs = this.now();
    const payload = toPayload(input);
    const reusable = this.trackers.findReusable(payload, endpoint === 'trackers.track');
    if (reusable !== undefined) return { tracker: reusable, isNew: false };
    if (this.trackers.size >= this.options.plans.perShipment.quota)
      throw rejection(403, 'quota_limit_reached', 'The quota is used up.');
    const tracker: TrackerState = {
      ...payload,
      ...this.askedNumber(payload.trackingNumber).shipmentFor(JSON.stringify(payload, SHIPMENT_FIELDS)),
      trackerId: this.ids.next('tracker'),
      createdAtMs,
      isSubscribed: true,
      isFetched: false,
      trackedUntilMs: createdAtMs + TRACKED_AFTER_EVENT_MS,
    };
    this.trackers.add(tracker);
    this.#scheduleFetch(tracker, createdAtMs);
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
    if (lackedHint) this.#gather(tracker, this.number(tracker.trackingNumber).events, nowMs);
  }

  #scheduleFetch(tracker: TrackerState, nowMs: number): void {
    this.#timeline.schedule(nowMs + this.options.resultsDelayMs, (atMs) => this.fetchResults(tracker, atMs));
  }

  /** The couriers respond for a tracker for the first time. */
  fetchResults(tracker: TrackerState, atMs: number): void {
    if (tracker.isFetched || !isTracked(tracker, atMs)) return;
    tracker.isFetched = true;
    const number = this.number(tracker.trackingNumber);
    tracker.shipment.fields = { ...number.fields, ...tracker.shipment.fields };
    this.#gather(tracker, number.events, atMs);
    if (number.stopsFirstTracker) tracker.trackedUntilMs = atMs;
    number.stopsFirstTracker = false;
  }

  /** New events of a number: every tracker of it has them at once, and pushes them; or of one tracker alone. */
  addEvents({ number, only }: Addressee, inputs: readonly EventInput[], atMs: number): void {
    const add = (input: EventInput) => (only?.shipment ?? number).add(input, this.ids, atMs);
    if (only !== undefined) {
      this.fetchResults(only, atMs);
      const shown = inputs.filter((input) => isOfItsCourier(only, input));
      if (isTracked(only, atMs)) this.#discovered(only, shown.map(add), atMs);
      return;
    }
    const events = inputs.map(add);
    for (const tracker of this.trackersOf({ number })) {
      if (tracker.isFetched) this.#gather(tracker, events, atMs);
      else this.fetchResults(tracker, atMs);
    }
  }

  setFields(whom: Addressee, fields: ShipmentInput, nowMs: number): void {
    const { number, only } = whom;
    if (only === undefined) number.fields = { ...number.fields, ...fields };
    for (const tracker of this.trackersOf(whom))
      if (isTracked(tracker, nowMs)) tracker.shipment.fields = { ...tracker.shipment.fields, ...fields };
  }

  /** The service gives up the trackers of a number, or one; told of a number that nobody tracks yet, its first one. */
  stopTracking(whom: Addressee, atMs: number): void {
    const trackers = this.trackersOf(whom);
    whom.number.stopsFirstTracker ||= trackers.length === 0;
    for (const tracker of trackers) {
      this.fetchResults(tracker, atMs);
      tracker.trackedUntilMs = atMs;
    }
  }

  /** Plans the steps of a play; their times are written as if the play ended just when its last step is seen. */
  play(number: NumberState, name: PlayName, speed: number): void {
    number.isScripted = true;
    const startMs = this.now();
    const steps = stepsOf(name);
    const lengthMs = steps.at(-1)?.afterMs ?? 0;
    const writtenStartMs = startMs + lengthMs / speed - lengthMs;
    for (const { afterMs, event, timeStyle } of steps) {
      this.#timeline.schedule(startMs + afterMs / speed, (atMs) => {
        if (event === 'stop') return this.stopTracking({ number }, atMs);
        const occurrenceDatetime = writeTime(writtenStartMs + afterMs, timeStyle);
        this.addEvents({ number }, [{ occurrenceDatetime, ...event }], atMs);
      });
    }
    this.now();
  }

  pushProof(whom: Addressee, proof: ProofOfDelivery['data'], atMs: number): void {
    const data = { ...signatureOf(whom.only?.shipment ?? whom.number), ...proof };
    for (const tracker of this.trackersOf(whom))
      if (isTracked(tracker, atMs)) this.#push(tracker, PROOF_OF_DELIVERY_TOPIC, atMs, { data });
  }

  /** Queues everything again that was pushed for a tracker but what still waits; returns how many events that are. */
  resend(trackerId: string): number {
    const waiting = new Set(this.webhooks.pending);
    const earlier = this.webhooks.history.filter(
      (push) => push.trackerId === trackerId && !push.isReplay && !waiting.has(push),
    );
    for (const { item } of earlier) this.webhooks.add(trackerId, item, true);
    return earlier.flatMap(({ item }) => ('events' in item ? item.events : [])).length;
  }

  trackersOf({ number, only }: Addressee): readonly TrackerState[] {
    return only === undefined ? this.trackers.withTrackingNumber(number.trackingNumber) : [only];
  }

  /** A tracker gets what couriers know, if they respond to it. */
  #gather(tracker: TrackerState, known: readonly TrackingEvent[], atMs: number): void {
    if (!isTracked(tracker, atMs) || !canRespond(this.couriers, tracker)) return;
    const events = known.filter((event) => isOfItsCourier(tracker, event)).map(tracker.gather);
    tracker.shipment.events.push(...events);
    this.#discovered(tracker, events, atMs);
  }

  /** Pushes new events of a tracker, which keep it tracked for longer. */
  #discovered(tracker: TrackerState, events: readonly TrackingEvent[], atMs: number): void {
    if (events.length === 0) return;
    const results = resultsView(tracker.shipment, tracker);
    const isDelivered = results.shipment?.statusMilestone === 'delivered';
    tracker.trackedUntilMs = atMs + (isDelivered ? TRACKED_AFTER_DELIVERY_MS : TRACKED_AFTER_EVENT_MS);
    const oldestFirst = sortEvents(events);
    const size = Math.min(this.options.eventsPerPush, events.length);
    for (let start = 0; start < events.length; start += size) {
      const pushed = oldestFirst.slice(start, start + size).reverse();
      this.#push(tracker, EVENTS_TOPIC, atMs, { ...results, events: pushed });
    }
  }

  #push(tracker: TrackerState, topic: string, atMs: number, content: PushContent): void {
    if (!this.options.webhooks) return;
    const generatedAt = new Date(atMs).toISOString();
    const metadata = { generatedAt, messageId: this.ids.next('message'), topic };
    this.webhooks.add(tracker.trackerId, { metadata, tracker: webhookTrackerView(tracker), ...content });
  }
}

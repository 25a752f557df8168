import type { Delivery, EventsDelivery, ProofOfDelivery, WebhookEvent } from '../schemas/webhook.ts';
import type { WebhookCallbacks, WorkContext } from './callbacks.ts';
import { eventKey, proofOfDeliveryKey } from './dedupe-keys.ts';
import { sortEvents } from './event-order.ts';

/** One thing that is handled once: an event, or a proof of delivery, which has no event. */
export interface WorkItem {
  readonly key: string;
  readonly delivery: EventsDelivery | ProofOfDelivery;
  readonly event?: WebhookEvent;
}

interface EventItem extends WorkItem {
  readonly delivery: EventsDelivery;
  readonly event: WebhookEvent;
}

/** Items that one call of a callback handles, all or none. */
export interface WorkUnit<Extra extends object = object> {
  readonly items: readonly WorkItem[];
  /** Calls the callback for those of the items that are ours. Extends `context`: make a new one for every call. */
  readonly run: (items: readonly WorkItem[], context: WorkContext & Extra) => unknown;
}

/** What a webhook asks for, before the store says what is new. */
export interface WorkPlan<Extra extends object = object> {
  readonly units: readonly WorkUnit<Extra>[];
  /** Deliveries for `onSnapshot`, if nothing of them turns out to be new. */
  readonly snapshots: readonly EventsDelivery[];
  /** Deliveries that no callback wants. */
  readonly unhandled: readonly Delivery[];
  /** How many items repeat an earlier one of the same webhook. */
  readonly repeated: number;
}

/** Sorts out which callback gets what. Of items with the same key the first one counts. */
export function planWork<Extra extends object>(
  deliveries: readonly Delivery[],
  callbacks: WebhookCallbacks<Extra>,
): WorkPlan<Extra> {
  const plan = new PlanBuilder(callbacks);
  for (const delivery of deliveries) plan.add(delivery);
  return plan.finish();
}

class PlanBuilder<Extra extends object> {
  readonly #callbacks: WebhookCallbacks<Extra>;
  readonly #seen = new Set<string>();
  readonly #units: WorkUnit<Extra>[] = [];
  readonly #eventsOfTracker = new Map<string, EventItem[]>();
  readonly #snapshots: EventsDelivery[] = [];
  readonly #unhandled: Delivery[] = [];
  #repeated = 0;

  constructor(callbacks: WebhookCallbacks<Extra>) {
    this.#callbacks = callbacks;
  }

  add(delivery: Delivery): void {
    const { handler, onDelivery, onProofOfDelivery, onSnapshot } = this.#callbacks;
    if (delivery.kind === 'proofOfDelivery' && onProofOfDelivery !== undefined) {
      this.#addProofOfDelivery(delivery, onProofOfDelivery);
    } else if (delivery.kind === 'events' && (handler ?? onDelivery ?? onSnapshot) !== undefined) {
      this.#snapshots.push(delivery);
      if (handler !== undefined) this.#addEvents(delivery);
      if (onDelivery !== undefined) this.#addDelivery(delivery, onDelivery);
    } else {
      this.#unhandled.push(delivery);
    }
  }

  finish(): WorkPlan<Extra> {
    const { handler } = this.#callbacks;
    if (handler !== undefined) {
      for (const items of this.#eventsOfTracker.values()) {
        for (const item of oldestFirst(items)) this.#units.push(eventUnit(item, handler));
      }
    }
    return {
      units: this.#units,
      snapshots: this.#snapshots,
      unhandled: this.#unhandled,
      repeated: this.#repeated,
    };
  }

  /** Events wait until all deliveries are known: two of the same tracker may bring them in any order. */
  #addEvents(delivery: EventsDelivery): void {
    const { trackerId } = delivery.tracker;
    const items = this.#eventsOfTracker.get(trackerId) ?? [];
    for (const item of this.#newEvents(delivery)) items.push(item);
    this.#eventsOfTracker.set(trackerId, items);
  }

  #addDelivery(
    delivery: EventsDelivery,
    onDelivery: NonNullable<WebhookCallbacks<Extra>['onDelivery']>,
  ): void {
    const items = oldestFirst(this.#newEvents(delivery));
    if (items.length === 0) return;
    const run: WorkUnit<Extra>['run'] = (ours, context) => {
      const events = ours.flatMap(({ event }) => event ?? []);
      const keys = ours.map(({ key }) => key);
      return onDelivery({ ...delivery, events }, Object.assign(context, { keys }));
    };
    this.#units.push({ items, run });
  }

  #addProofOfDelivery(
    delivery: ProofOfDelivery,
    onProofOfDelivery: NonNullable<WebhookCallbacks<Extra>['onProofOfDelivery']>,
  ): void {
    const key = proofOfDeliveryKey(delivery);
    if (!this.#isNew(key)) return;
    const run: WorkUnit<Extra>['run'] = (_, context) =>
      onProofOfDelivery(delivery, Object.assign(context, { key }));
    this.#units.push({ items: [{ key, delivery }], run });
  }

  #newEvents(delivery: EventsDelivery): EventItem[] {
    const items = delivery.events.map((event) => ({ key: eventKey(delivery, event), delivery, event }));
    return items.filter(({ key }) => this.#isNew(key));
  }

  #isNew(key: string): boolean {
    const isNew = !this.#seen.has(key);
    if (isNew) this.#seen.add(key);
    else this.#repeated += 1;
    return isNew;
  }
}

function eventUnit<Extra extends object>(
  item: EventItem,
  handler: NonNullable<WebhookCallbacks<Extra>['handler']>,
): WorkUnit<Extra> {
  const { key, delivery, event } = item;
  // Assigned, not spread, which would make the signal that nobody may ask for.
  return { items: [item], run: (_, context) => handler(event, Object.assign(context, { key, delivery })) };
}

function oldestFirst(items: readonly EventItem[]): readonly EventItem[] {
  if (items.length < 2) return items;
  const itemOf = new Map(items.map((item) => [item.event, item]));
  return sortEvents(items.map(({ event }) => event)).flatMap((event) => itemOf.get(event) ?? []);
}

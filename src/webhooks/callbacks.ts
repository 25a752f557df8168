import { z } from 'zod';
import { onAbort } from '../common/abort.ts';
import { checkOptions, functionOption, type OptionShape } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError, TrackingError } from '../errors.ts';
import { buildEventKeys, buildProofOfDeliveryKey, getTrackerName } from '../events/keys.ts';
import { sortByEvent } from '../events/order.ts';
import type { Delivery, EventsDelivery, ProofOfDelivery, WebhookEvent } from '../schemas/webhook.ts';
import type { Claim } from './dedupe-store.ts';

/** What every callback that does work is told. */
export interface WorkContext {
  /** Counts from 1, over all receivers and redeliveries. */
  readonly attempt: number;
  /** Aborts when the handler took too long, when another receiver took the work over, or on a forced shutdown. */
  readonly signal: AbortSignal;
}

/** What `handler` is told beside the event. */
export interface EventContext extends WorkContext {
  /** The delivery that brought the event: tracker, shipment, and all events of the push. */
  readonly delivery: EventsDelivery;
  /** The name under which the event is remembered; a good idempotency key for your own writes. */
  readonly key: string;
}

/** What `onDelivery` is told beside the delivery. */
export interface DeliveryContext extends WorkContext {
  /** The names under which the delivery's new events are remembered, in the order of its `events`. */
  readonly keys: readonly string[];
}

/** What `onProofOfDelivery` is told beside it. */
export interface ProofOfDeliveryContext extends WorkContext {
  /** The name under which the proof of delivery is remembered. */
  readonly key: string;
}

/** Handles one new event; the event counts as handled once the returned promise resolves. */
export type EventHandler<Extra extends object = object> = (
  event: WebhookEvent,
  context: EventContext & Extra,
) => unknown;

/**
 * What to do with a webhook; each may return a promise. `Extra` is what a processor adds to the context.
 * Give `handler` or `onDelivery`, not both.
 */
export interface WebhookCallbacks<Extra extends object = object> {
  /** Called once for every new event, oldest first. Default: none, and without `onDelivery` either the delivery is unhandled. */
  readonly handler?: EventHandler<Extra> | undefined;
  /** Called once for every delivery that has new events, with `events` cut down to these, oldest first. */
  readonly onDelivery?: ((delivery: EventsDelivery, context: DeliveryContext & Extra) => unknown) | undefined;
  /** Called once for every new proof of delivery. */
  readonly onProofOfDelivery?:
    | ((proofOfDelivery: ProofOfDelivery, context: ProofOfDeliveryContext & Extra) => unknown)
    | undefined;
  /** Called for a delivery without new events, whose shipment may still be newer. Not deduplicated: expect repeats. */
  readonly onSnapshot?: ((delivery: EventsDelivery) => unknown) | undefined;
  /** Called for a delivery of an unknown topic, or one that none of the above wants. Not deduplicated: expect repeats. */
  readonly onUnhandled?: ((delivery: Delivery) => unknown) | undefined;
}

/** The schemas of callbacks; their types are those of the functions that are given. */
export const CALLBACK_OPTIONS = {
  handler: functionOption().optional(),
  onDelivery: functionOption().optional(),
  onProofOfDelivery: functionOption().optional(),
  onSnapshot: functionOption().optional(),
  onUnhandled: functionOption().optional(),
} satisfies OptionShape<WebhookCallbacks>;
const callbackOptions = z.strictObject(CALLBACK_OPTIONS);

/** What `toCallbacks` made: a receiver checks its callbacks once, not for every webhook. */
const checkedCallbacks = new WeakSet<object>();

/** Checks callbacks; a function alone is `handler`. */
export function toCallbacks<Extra extends object>(
  given: EventHandler<Extra> | WebhookCallbacks<Extra>,
): WebhookCallbacks<Extra> {
  if (typeof given === 'function') return { handler: given };
  if (typeof given !== 'object' || given === null) {
    throw new ConfigurationError(
      `Expected \`handler\` to be a function or an object of callbacks, got ${kindOf(given)}`,
    );
  }
  if (checkedCallbacks.has(given)) return given;
  // Strict: a misspelt callback would leave its events unhandled, and answer 200.
  checkOptions(callbackOptions, given);
  const { handler, onDelivery, onProofOfDelivery, onSnapshot, onUnhandled } = given;
  if (handler !== undefined && onDelivery !== undefined) {
    throw new ConfigurationError('Expected `handler` or `onDelivery`, got both');
  }
  // Nothing would be done with any event, and all of them answered with 200.
  if ((handler ?? onDelivery ?? onProofOfDelivery ?? onSnapshot ?? onUnhandled) === undefined) {
    throw new ConfigurationError('Expected a `handler` or another callback for webhooks, got none');
  }
  const callbacks = { handler, onDelivery, onProofOfDelivery, onSnapshot, onUnhandled };
  checkedCallbacks.add(callbacks);
  return callbacks;
}

/** An abort that makes its signal on first use: most callbacks never look, and it is costly. */
export class Cancellation {
  readonly #parent: AbortSignal | undefined;
  #controller: AbortController | undefined;
  #unsubscribe: (() => void) | undefined;
  #isOver = false;
  #cancelled: { readonly reason: unknown } | undefined;

  /** @param parent - its abort is passed on until `end` */
  constructor(parent: AbortSignal | undefined) {
    this.#parent = parent;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelled !== undefined) this.#controller.abort(this.#cancelled.reason);
      const parent = this.#parent;
      if (!this.#isOver)
        this.#unsubscribe = parent && onAbort(parent, () => this.#controller?.abort(parent.reason));
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#cancelled ??= { reason };
    this.#controller?.abort(reason);
  }

  /** The callback is over: a long-lived parent must hold nothing of it. */
  end(): void {
    this.#isOver = true;
    this.#unsubscribe?.();
  }

  /** Whether an error says that the callback was given up on, which may then still be running. */
  isReason(error: unknown): boolean {
    return this.#cancelled !== undefined && this.#cancelled.reason === error;
  }
}

/** Its own, for a context may be spread; and one getter for all, since objects with a getter each are slow ones. */
let signalProperty: PropertyDescriptor;

/** What a callback is told at least. */
export class CallContext implements WorkContext {
  readonly attempt: number;
  declare readonly signal: AbortSignal;
  readonly #cancellation: Cancellation;

  static {
    signalProperty = {
      enumerable: true,
      get(this: CallContext) {
        return this.#cancellation.signal;
      },
    };
  }

  constructor(attempt: number, cancellation: Cancellation) {
    this.attempt = attempt;
    this.#cancellation = cancellation;
    Object.defineProperty(this, 'signal', signalProperty);
  }
}

/**
 * Calls back; settles as the callback does, and is undefined when that is over at once. Rejects, and aborts the cancellation
 * with the same error, once the callback took too long.
 */
export function callWithTimeout(
  callback: () => unknown,
  timeoutMs: number,
  cancellation: Cancellation,
): Promise<void> | undefined {
  let result: unknown;
  try {
    result = callback();
  } catch (error) {
    cancellation.end();
    throw error;
  }
  if (typeof Object(result).then === 'function')
    return withTimeout(Promise.resolve(result), timeoutMs, cancellation);
  cancellation.end();
  return undefined;
}

function withTimeout(work: Promise<unknown>, timeoutMs: number, cancellation: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const error = new TrackingError(`Expected the webhook callback to finish within ${timeoutMs} ms`);
      cancellation.abort(error);
      cancellation.end();
      reject(error);
    }, timeoutMs);
    // A callback that waits for nothing must not keep the process alive.
    timer.unref?.();
    const end = () => {
      clearTimeout(timer);
      cancellation.end();
    };
    work.then(() => resolve(), reject).finally(end);
  });
}

/** What became of one item. */
export type ItemOutcome = 'handled' | 'duplicate' | 'deadLettered' | 'failed' | 'unavailable' | 'interrupted';

/** One thing that is handled once, an event or a proof of delivery, and how far its webhook is with it. */
export class WorkItem {
  readonly key: string;
  readonly delivery: EventsDelivery | ProofOfDelivery;
  /** A proof of delivery has none. */
  readonly event: WebhookEvent | undefined;
  /** What the store said of it last. */
  claim: Claim | undefined;
  /** Undefined while it is open: not begun, or in the hands of others. */
  outcome: ItemOutcome | undefined;
  /** What its callback failed with. */
  error: unknown;
  /** Whether `onDeadLetter` was called for it. */
  isLettered = false;
  /** The item of another webhook of this process that is at work on the same key; itself when this one is. */
  holder: WorkItem | undefined;
  #waiting: (() => void)[] | undefined;

  constructor(key: string, delivery: EventsDelivery | ProofOfDelivery, event?: WebhookEvent) {
    this.key = key;
    this.delivery = delivery;
    this.event = event;
  }

  /** Counts from 1. */
  get attempt(): number {
    return this.claim?.status === 'acquired' ? this.claim.attempt : 1;
  }

  /** Calls back once this holder is through with the key; at once when it is already. */
  whenSettled(callback: () => void): void {
    if (this.holder === this) this.#waiting = [...(this.#waiting ?? []), callback];
    else callback();
  }

  /** The holder is through: its outcome is what its duplicates go by. */
  settle(): void {
    this.holder = undefined;
    for (const callback of this.#waiting ?? []) callback();
  }

  /** Whether nothing is left to do. */
  get isDone(): boolean {
    return this.outcome === 'handled' || this.outcome === 'duplicate' || this.outcome === 'deadLettered';
  }
}

/** Items that one call of a callback handles, all or none. */
export interface WorkUnit<Extra extends object = object> {
  readonly items: readonly WorkItem[];
  /** Calls the callback for those of the items that are ours. Extends `context`: make a new one for every call. */
  readonly run: (items: readonly WorkItem[], context: WorkContext & Extra) => unknown;
}

/** What a webhook asks for, before the store says what is new. */
export interface WorkPlan<Extra extends object = object> {
  readonly callbacks: WebhookCallbacks<Extra>;
  readonly units: readonly WorkUnit<Extra>[];
  /** Deliveries for `onSnapshot`, if nothing of them turns out to be new. */
  readonly snapshots: readonly EventsDelivery[];
  /** Deliveries that no callback wants. */
  readonly unhandled: readonly Delivery[];
}

/** Sorts out which callback gets what. */
export function planWork<Extra extends object>(
  deliveries: readonly Delivery[],
  callbacks: WebhookCallbacks<Extra>,
): WorkPlan<Extra> {
  const { handler, onDelivery, onProofOfDelivery, onSnapshot } = callbacks;
  const units: WorkUnit<Extra>[] = [];
  const snapshots: EventsDelivery[] = [];
  const unhandled: Delivery[] = [];
  // Events wait until all deliveries are known: two of the same tracker may bring them in any order.
  const eventsOfTracker = new Map<string, EventItem[]>();

  for (const delivery of deliveries) {
    if (delivery.kind === 'proofOfDelivery' && onProofOfDelivery !== undefined) {
      units.push(proofOfDeliveryUnit(delivery, onProofOfDelivery));
    } else if (delivery.kind === 'events' && (handler ?? onDelivery ?? onSnapshot) !== undefined) {
      snapshots.push(delivery);
      if (handler !== undefined) {
        const tracker = getTrackerName(delivery.tracker);
        const items = eventItems(delivery);
        eventsOfTracker.set(tracker, eventsOfTracker.get(tracker)?.concat(items) ?? items);
      } else if (onDelivery !== undefined) {
        units.push(deliveryUnit(delivery, onDelivery));
      }
    } else {
      unhandled.push(delivery);
    }
  }
  if (handler !== undefined) {
    // Two webhooks whose handlers write to the same rows of an application must come to them in one order, or they lock each other out.
    for (const tracker of [...eventsOfTracker.keys()].sort()) {
      for (const item of sortByEvent(eventsOfTracker.get(tracker) ?? [], eventOf))
        units.push(eventUnit(item, handler));
    }
  }
  return { callbacks, units, snapshots, unhandled };
}

interface EventItem extends WorkItem {
  readonly delivery: EventsDelivery;
  readonly event: WebhookEvent;
}

function eventItems(delivery: EventsDelivery): EventItem[] {
  const keyOf = buildEventKeys(delivery);
  // Sound: what the constructor was given are an events delivery and an event.
  return delivery.events.map((event) => new WorkItem(keyOf(event), delivery, event) as EventItem);
}

function eventOf({ event }: EventItem): WebhookEvent {
  return event;
}

// Contexts are assigned to, not spread, which would make the signal that nobody may ask for.

function eventUnit<Extra extends object>(item: EventItem, handler: EventHandler<Extra>): WorkUnit<Extra> {
  const { key, delivery, event } = item;
  return { items: [item], run: (_, context) => handler(event, Object.assign(context, { key, delivery })) };
}

function deliveryUnit<Extra extends object>(
  delivery: EventsDelivery,
  onDelivery: NonNullable<WebhookCallbacks<Extra>['onDelivery']>,
): WorkUnit<Extra> {
  const run: WorkUnit<Extra>['run'] = (ours, context) => {
    const events = ours.flatMap(({ event }) => event ?? []);
    return onDelivery({ ...delivery, events }, Object.assign(context, { keys: ours.map(({ key }) => key) }));
  };
  return { items: sortByEvent(eventItems(delivery), eventOf), run };
}

function proofOfDeliveryUnit<Extra extends object>(
  delivery: ProofOfDelivery,
  onProofOfDelivery: NonNullable<WebhookCallbacks<Extra>['onProofOfDelivery']>,
): WorkUnit<Extra> {
  const key = buildProofOfDeliveryKey(delivery);
  return {
    items: [new WorkItem(key, delivery)],
    run: (_, context) => onProofOfDelivery(delivery, Object.assign(context, { key })),
  };
}

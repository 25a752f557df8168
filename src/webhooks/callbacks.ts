import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import type { Delivery, EventsDelivery, ProofOfDelivery, WebhookEvent } from '../schemas/webhook.ts';
import { checkFunction } from './function-check.ts';

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
  const { handler, onDelivery, onProofOfDelivery, onSnapshot, onUnhandled } = given;
  const callbacks = { handler, onDelivery, onProofOfDelivery, onSnapshot, onUnhandled };
  for (const [name, callback] of Object.entries(callbacks)) checkFunction(name, callback);
  if (handler !== undefined && onDelivery !== undefined) {
    throw new ConfigurationError('Expected `handler` or `onDelivery`, got both');
  }
  return callbacks;
}

import * as z from 'zod';
import { checkOptions, functionOption, type OptionShape } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import type { EventsMessage, ProofOfDelivery, WebhookEvent, WebhookMessage } from '../schemas/webhook.ts';

/** The context of every callback that handles events. */
export interface CallbackContext {
  /** Counts from 1, over all receivers and redeliveries. */
  readonly attempt: number;
  /** Aborts when the callback took too long, when another receiver took the work over, or on a forced shutdown. */
  readonly signal: AbortSignal;
}

/** The second argument of `onEvent`. */
export interface EventContext extends CallbackContext {
  /** The message that brought the event: tracker, shipment, and all events of the push. */
  readonly message: EventsMessage;
  /** The key under which the event is remembered; a good idempotency key for your own writes. */
  readonly key: string;
}

/** The second argument of `onEvents`. */
export interface EventsContext extends CallbackContext {
  /** The keys under which the message's new events are remembered, in the order of its `events`. */
  readonly keys: readonly string[];
}

/** The second argument of `onProofOfDelivery`. */
export interface ProofOfDeliveryContext extends CallbackContext {
  /** The key under which the proof of delivery is remembered. */
  readonly key: string;
}

/** Handles one new event; the event counts as handled once the returned promise resolves. */
export type EventCallback<Extra extends object = object> = (
  event: WebhookEvent,
  context: EventContext & Extra,
) => unknown;

/**
 * What to do with a webhook; each may return a promise. `Extra` is what an inbox adds to the context.
 * Give `onEvent` or `onEvents`, not both.
 */
export interface WebhookCallbacks<Extra extends object = object> {
  /** Called once for every new event, oldest first. Default: none. */
  readonly onEvent?: EventCallback<Extra> | undefined;
  /** Called once for every message that has new events, with `events` cut down to these, oldest first. Default: none. */
  readonly onEvents?: ((message: EventsMessage, context: EventsContext & Extra) => unknown) | undefined;
  /** Called once for every new proof of delivery. Default: none. */
  readonly onProofOfDelivery?:
    | ((proofOfDelivery: ProofOfDelivery, context: ProofOfDeliveryContext & Extra) => unknown)
    | undefined;
  /**
   * Called for messages of unknown topics, messages without events, and what none of the above wants. Not deduplicated: expect
   * repeats. Default: none.
   */
  readonly onOther?: ((message: WebhookMessage) => unknown) | undefined;
}

/** The schemas of callbacks; the compiler checks what they are called with. */
export const CALLBACK_OPTIONS = {
  onEvent: functionOption().optional(),
  onEvents: functionOption().optional(),
  onProofOfDelivery: functionOption().optional(),
  onOther: functionOption().optional(),
} satisfies OptionShape<WebhookCallbacks>;
const callbackOptions = z.strictObject(CALLBACK_OPTIONS);

/** Callbacks that `checkCallbacks` has checked. A webhook handler checks them once, not for every webhook. */
export const checkedCallbacks = new WeakSet<object>();

/**
 * Checks callbacks; a function alone is `onEvent`.
 *
 * @throws ConfigurationError when there is none, when one is no function or has an unknown name, or when two exclude each other
 */
export function checkCallbacks<Extra extends object>(
  callbacks: EventCallback<Extra> | WebhookCallbacks<Extra>,
): WebhookCallbacks<Extra> {
  if (typeof callbacks === 'function') return { onEvent: callbacks };
  if (typeof callbacks !== 'object' || callbacks === null) {
    throw new ConfigurationError(
      `Expected \`onEvent\` to be a function or an object of callbacks, got ${kindOf(callbacks)}`,
    );
  }
  // A misspelt callback would leave its events to `onOther`, and the webhook would be acknowledged with 200.
  checkOptions(callbackOptions, callbacks);
  const { onEvent, onEvents, onProofOfDelivery, onOther } = callbacks;
  if (onEvent !== undefined && onEvents !== undefined) {
    throw new ConfigurationError('Expected `onEvent` or `onEvents`, got both');
  }
  if ((onEvent ?? onEvents ?? onProofOfDelivery ?? onOther) === undefined) {
    throw new ConfigurationError('Expected `onEvent` or another callback for webhooks, got none');
  }
  const checked = { onEvent, onEvents, onProofOfDelivery, onOther };
  checkedCallbacks.add(checked);
  return checked;
}

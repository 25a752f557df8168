import * as z from 'zod';
import {
  callGuarded,
  checkOptions,
  countOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import { formatError, type Logger, resolveLogger } from '../observability/logger.ts';
import type { EventsMessage, ProofOfDelivery, WebhookEvent, WebhookMessage } from '../schemas/webhook.ts';
import { type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';
import type { ItemIssues } from './parse.ts';

const DEFAULT_RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

/** The context of every callback that handles events. */
export interface CallbackContext {
  /** Counts from 1, over all receivers and redeliveries. */
  readonly attempt: number;
  /** Aborts when the callback took too long, another receiver took the work over, or a shutdown is forced. */
  readonly signal: AbortSignal;
}

/** The second argument of `onEvent`. */
export interface EventContext extends CallbackContext {
  /** The message that brought the event, with tracker, shipment, and all events of the push. */
  readonly message: EventsMessage;
  /** The key under which the event is remembered; a good idempotency key for your own writes. */
  readonly key: string;
}

/** The second argument of `onDeadLetter`. */
export interface DeadLetterContext extends CallbackContext {
  /** The message that brought the event, or the proof of delivery itself. */
  readonly message: EventsMessage | ProofOfDelivery;
  /** The key under which the event is remembered. */
  readonly key: string;
  /** What the last attempt threw. */
  readonly error: unknown;
}

/** Handles one new event; the event counts as handled once the returned promise resolves. */
export type EventCallback<Extra extends object = object> = (
  event: WebhookEvent,
  context: EventContext & Extra,
) => unknown;

export type DeadLetterCallback<Extra extends object = object> = (
  event: WebhookEvent | undefined,
  context: DeadLetterContext & Extra,
) => unknown;

/** The functions that handle a webhook; they may return promises. An inbox adds the fields of `Extra` to their context. */
export interface WebhookCallbacks<Extra extends object = object> {
  /** Called once for every new event, oldest first. Default: none. */
  readonly onEvent?: EventCallback<Extra> | undefined;
  /** Called for each message with new events: `events` holds only these, oldest first, and `keys` their keys. Default: none. */
  readonly onEvents?:
    | ((
        message: EventsMessage,
        context: CallbackContext & { readonly keys: readonly string[] } & Extra,
      ) => unknown)
    | undefined;
  /** Called once for every new proof of delivery (docs/service.md 8.6). Default: none. */
  readonly onProofOfDelivery?:
    | ((proof: ProofOfDelivery, context: CallbackContext & { readonly key: string } & Extra) => unknown)
    | undefined;
  /** Called without deduplication for messages that have an unknown topic, no events or no callback. Default: none. */
  readonly onOther?: ((message: WebhookMessage) => unknown) | undefined;
}

/** The second argument of `onError`. */
export interface InboxErrorContext {
  /** The operation that the error interrupted. */
  readonly operation:
    | 'claim'
    | 'renew'
    | 'commit'
    | 'release'
    | 'parse'
    | 'callback'
    | 'deadLetter'
    | 'other';
  /** The keys of the events concerned; empty for `parse` and `other`. */
  readonly keys: readonly string[];
}

/** Options of an inbox on a store; a webhook handler takes them as well. */
export interface InboxOptions {
  /** How long a receiver keeps an event from others, in milliseconds; renewed while its work goes on. Default: 60,000. */
  readonly leaseMs?: number | undefined;
  /** How long a handled event is remembered, in milliseconds, at least 7 days (docs/service.md 8.5). Default: 30 days. */
  readonly retainMs?: number | undefined;
  /** Attempts of an event before `onDeadLetter`, unfinished ones included. Default: 10 with `onDeadLetter`, else no limit. */
  readonly maxAttempts?: number | undefined;
  /**
   * Takes an event that keeps failing; the event is done once the returned promise resolves, and tried again if it rejects.
   * For a proof of delivery the event is undefined, and `context.message` is the proof. Default: none.
   */
  readonly onDeadLetter?: DeadLetterCallback | undefined;
  /** How long a callback may run before it counts as failed and its `signal` aborts, in milliseconds. Default: 600,000. */
  readonly callbackTimeoutMs?: number | undefined;
  /** Gets errors that reject no promise, rejected items, and each mismatched field once. Default: writes to `logger`. */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
  /** Where log lines go: the console, or a logger of pino, winston, bunyan or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
}

/** Options of `WebhookInbox`. */
export interface WebhookInboxOptions extends InboxOptions {
  /** Remembers handled events; all receivers must share it. */
  readonly store: DedupeStore;
}

/** Options of one call of `process`. */
export interface ProcessOptions {
  /** How long to wait for events that another receiver works on, in milliseconds. Default: 8,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** When this signal aborts, no further callback starts, and the signal of the running callback aborts, too. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The outcome of a whole webhook: the first in this list that applies.
 * - `failed`: a callback threw or rejected
 * - `unavailable`: the store failed before everything was handled
 * - `interrupted`: a shutdown left work undone
 * - `busy`: another receiver still works on a part of it
 * - `rejected`: some items were invalid; all others are done
 * - `done`: nothing is left to do
 */
export type WebhookOutcome = 'failed' | 'unavailable' | 'interrupted' | 'busy' | 'rejected' | 'done';

/** One callback that failed; its keys were released, so a redelivery tries again. */
export interface WebhookFailure {
  /** The keys of its events; empty for `onOther`. */
  readonly keys: readonly string[];
  /** What the callback threw. */
  readonly error: unknown;
}

/** The result of one webhook, counted in events and proofs of delivery. */
export interface WebhookReport {
  /** The outcome of the whole webhook. */
  readonly outcome: WebhookOutcome;
  /** Handled by this call. */
  readonly handled: number;
  /** Handled before, or repeated inside the payload. */
  readonly duplicates: number;
  /** Given to `onDeadLetter` and done. */
  readonly deadLettered: number;
  /** Messages for `onOther`, even if it is not set or was not called. */
  readonly others: number;
  /** The callbacks that failed. */
  readonly failures: readonly WebhookFailure[];
  /** Keys that another receiver still works on. */
  readonly busy: readonly string[];
  /** Keys that were not handled because the store failed. */
  readonly unavailable: readonly string[];
  /** Keys that a shutdown left undone. */
  readonly interrupted: readonly string[];
  /** When the first of the busy leases ends, in milliseconds from now; undefined when nothing is busy. */
  readonly retryAfterMs: number | undefined;
  /** The invalid items. */
  readonly rejected: readonly ItemIssues[];
}

/** Handles webhooks: a `WebhookInbox`, a `TransactionalInbox`, or your own implementation. */
export interface WebhookProcessor<Extra extends object = object> {
  /**
   * Handles the new events of a webhook body, oldest first. A callback that fails does not stop the other callbacks.
   *
   * @param payload - the body: text, UTF-8 bytes, or JSON that is parsed already
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns the report; only `done` and `rejected` leave nothing to redeliver
   * @throws WebhookParseError when the body is not UTF-8 JSON; ConfigurationError when callbacks or options make no sense
   */
  process(
    payload: unknown,
    callbacks: EventCallback<Extra> | WebhookCallbacks<Extra>,
    options?: ProcessOptions,
  ): Promise<WebhookReport>;
}

export const CALLBACK_OPTIONS = {
  onEvent: functionOption().optional(),
  onEvents: functionOption().optional(),
  onProofOfDelivery: functionOption().optional(),
  onOther: functionOption().optional(),
} satisfies OptionShape<WebhookCallbacks>;
const callbackOptions = z.strictObject(CALLBACK_OPTIONS);

/** Checks callbacks; a function alone is `onEvent`. */
export function checkCallbacks<Extra extends object>(
  callbacks: EventCallback<Extra> | WebhookCallbacks<Extra>,
): WebhookCallbacks<Extra> {
  if (typeof callbacks === 'function') return { onEvent: callbacks };
  if (typeof callbacks !== 'object' || callbacks === null) {
    throw new ConfigurationError(
      `Expected \`onEvent\` to be a function or an object of callbacks, got ${kindOf(callbacks)}`,
    );
  }
  // The events of a misspelt callback would go to `onOther`, and the response would be 200.
  checkOptions(callbackOptions, callbacks);
  const { onEvent, onEvents, onProofOfDelivery, onOther } = callbacks;
  if (onEvent !== undefined && onEvents !== undefined) {
    throw new ConfigurationError('Expected `onEvent` or `onEvents`, got both');
  }
  if ((onEvent ?? onEvents ?? onProofOfDelivery ?? onOther) === undefined) {
    throw new ConfigurationError('Expected `onEvent` or another callback for webhooks, got none');
  }
  return callbacks;
}

/** Builds the schemas of the options that every kind of inbox has. */
export function buildCommonOptions<Extra extends object>(defaultCallbackTimeoutMs: number) {
  return {
    // If a key were forgotten before the sender gives up (docs/service.md 8.5), a late redelivery would be handled again.
    retainMs: countOption(OUTLASTS_SENDER_MS).default(DEFAULT_RETAIN_MS),
    maxAttempts: countOption(1).optional(),
    onDeadLetter: functionOption<DeadLetterCallback<Extra>>().optional(),
    callbackTimeoutMs: timeoutOption.default(defaultCallbackTimeoutMs),
    onError: functionOption<NonNullable<InboxOptions['onError']>>().optional(),
    // `resolveLogger` checks the logger.
    logger: z.custom<Logger>().optional(),
  };
}

/** The options that every kind of inbox has, checked and filled in; the inbox adds the fields of `Extra` to the context. */
export type InboxSettings<Extra extends object = object> = ReturnType<typeof resolveCommonOptions<Extra>>;

export function resolveCommonOptions<Extra extends object>(
  options: z.output<z.ZodObject<ReturnType<typeof buildCommonOptions<Extra>>>>,
) {
  const { maxAttempts = 10, onDeadLetter, retainMs, callbackTimeoutMs } = options;
  if (options.maxAttempts !== undefined && onDeadLetter === undefined) {
    throw new ConfigurationError('Expected `onDeadLetter` beside `maxAttempts`, got none');
  }
  const observer = options.onError ?? logErrors(options.logger);
  return {
    retainMs,
    callbackTimeoutMs,
    onDeadLetter,
    maxAttempts: onDeadLetter === undefined ? Number.POSITIVE_INFINITY : maxAttempts,
    onError: (error: unknown, operation: InboxErrorContext['operation'], keys: readonly string[]) =>
      callGuarded(() => observer(error, { operation, keys })),
    // Each field is reported to `onError` once, because a field that the service changed breaks the schema in every webhook.
    knownMismatches: new Set<string>(),
  };
}

function logErrors(logger: Logger | undefined): NonNullable<InboxOptions['onError']> {
  const log = resolveLogger(logger);
  return (error, { operation, keys }) =>
    log.error(`Webhook ${operation} failed: ${formatError(error)}`, { keys, err: error });
}

export const INBOX_OPTIONS = {
  ...buildCommonOptions<object>(600_000),
  store: option<DedupeStore>(
    'a DedupeStore such as `new MemoryDedupeStore()`, with `claim`, `commit` and `release`',
    (store) => hasMethods(store, 'claim', 'commit', 'release'),
  ),
  leaseMs: countOption(1).and(timeoutOption).default(60_000),
} satisfies OptionShape<WebhookInboxOptions>;
const inboxOptions = z.strictObject(INBOX_OPTIONS);

export type StoreInboxSettings = ReturnType<typeof resolveInboxOptions>;

export function resolveInboxOptions(options: WebhookInboxOptions) {
  const { store, leaseMs, ...common } = checkOptions(inboxOptions, options);
  return { store, leaseMs, ...resolveCommonOptions(common) };
}

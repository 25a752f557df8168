import * as z from 'zod';
import { callGuarded } from '../common/callbacks.ts';
import { checkOptions, refuseOption } from '../common/check-options.ts';
import { MAX_TIMER_MS } from '../common/clock.ts';
import { EVENTS_TOPIC } from '../common/event-keys.ts';
import { toPrintableLine } from '../common/foreign.ts';
import {
  countOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  rule,
  timeoutOption,
} from '../common/option-schemas.ts';
import { ConfigurationError } from '../errors.ts';
import { formatError, type Logger, limitLines, resolveLogger } from '../observability/logger.ts';
import type { WebhookEvent } from '../schemas/event.ts';
import type { EventsMessage, ProofOfDelivery, WebhookMessage } from '../schemas/webhook.ts';
import { type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';
import { MemoryDedupeStore } from './memory-store.ts';

const DEFAULT_RETAIN_MS = 30 * 24 * 60 * 60 * 1000;
/** Time limit of a store that has none. A webhook that cannot be claimed gets its 503 within five seconds. */
export const DEFAULT_STORE_TIMEOUT_MS = 4_500;

/** The context of every callback that handles events. */
export interface CallbackContext {
  /** Counts from 1, over all receivers and redeliveries. */
  readonly attempt: number;
  /** Aborts when the callback took too long, its lease has ended, another receiver took the work over, or a shutdown is forced. */
  readonly signal: AbortSignal;
  /** The account that the webhook is for: what your function `secret` or the option `account` of `process` named. Default: none. */
  readonly account: string | undefined;
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
  /** The error of the last attempt; a `TrackingError` if the callback was not called again. */
  readonly error: unknown;
}

/** Handles one new event; the event counts as handled once the returned promise resolves. */
export type EventCallback = (event: WebhookEvent, context: EventContext) => unknown;

export type DeadLetterCallback = (event: WebhookEvent | undefined, context: DeadLetterContext) => unknown;

/** The functions that handle a webhook; they may return promises. */
export interface WebhookCallbacks {
  /** Called once for every new event, oldest first. Default: none. */
  readonly onEvent?: EventCallback | undefined;
  /** Called for each message with new events: `events` contains only these, oldest first, and `keys` their keys. Default: none. */
  readonly onEvents?:
    | ((message: EventsMessage, context: CallbackContext & { readonly keys: readonly string[] }) => unknown)
    | undefined;
  /** Called once for every new proof of delivery (docs/service.md 8.6). Default: none. */
  readonly onProofOfDelivery?:
    | ((proof: ProofOfDelivery, context: CallbackContext & { readonly key: string }) => unknown)
    | undefined;
  /**
   * Called without deduplication for messages that have an unknown topic, no events or no callback. The second argument has the
   * account, if you named one. Default: none.
   */
  readonly onOther?:
    | ((message: WebhookMessage, context?: { readonly account: string }) => unknown)
    | undefined;
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

/** Options of an inbox; a webhook handler takes them as well. */
export interface InboxOptions {
  /** How long the lease of an event lasts, in milliseconds. It is renewed while the callback runs. Default: 60,000. */
  readonly leaseMs?: number | undefined;
  /**
   * How long a handled event is remembered, in milliseconds, at least 7 days (docs/service.md 8.5). If the event comes again, this
   * time begins again. Default: 30 days.
   */
  readonly retainMs?: number | undefined;
  /**
   * After this number of failed attempts, an event goes to `onDeadLetter`. Set this option only with `onDeadLetter`. Attempts that never ended, as when the process died, count as failed. If the last attempt never ended, the next delivery gives the
   * event to `onDeadLetter`, and does not call your callback again. Without `onDeadLetter`, there is no limit, but an event that
   * was attempted 10 times is handled after all other events of its webhook. Default: 10 with `onDeadLetter`.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Takes an event that has failed `maxAttempts` times. The event is done when the returned promise resolves. If it rejects, the
   * next delivery calls `onDeadLetter` again. For a proof of delivery the event is undefined, and `context.message` is the proof.
   * Default: none.
   */
  readonly onDeadLetter?: DeadLetterCallback | undefined;
  /** How long a callback may run, in milliseconds. Then it counts as failed, and its `signal` aborts. Default: 600,000. */
  readonly callbackTimeoutMs?: number | undefined;
  /**
   * Called for each failure of a callback or the store, for each message that causes a 422, and for each message in which a
   * field has an unexpected type for the first time. A commit that fails is tried again, so a failure of a commit may be followed
   * by a success. Default: writes to `logger`, but at most one failure of the store a minute.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
  /** A logger, for example of pino, winston, bunyan or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
}

/** Options of `WebhookInbox`. */
export interface WebhookInboxOptions extends InboxOptions {
  /** Remembers handled events. All processes must share it. */
  readonly store: DedupeStore;
}

/** Options of one call of a method of `WebhookInbox`. */
export interface ProcessOptions {
  /** How long to wait for events that another receiver handles, in milliseconds. Default: 8,000. */
  readonly busyTimeoutMs?: number | undefined;
  /**
   * A signal that stops the work. When it aborts, no further callback starts, and the signal of the running callback aborts, too.
   * Default: none.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * When you got the results, for `processResults`. Their message gets this time as `generatedAt`. A webhook keeps its
   * own `generatedAt`. Default: `readAt` of the poll, else now.
   */
  readonly receivedAt?: Date | undefined;
  /**
   * Your name for the account, if you have several. It is a part of each key, so that events of two accounts are never taken
   * for the same. Default: none.
   */
  readonly account?: string | undefined;
}

export const CALLBACK_OPTIONS = {
  onEvent: functionOption<EventCallback>().optional(),
  onEvents: functionOption<NonNullable<WebhookCallbacks['onEvents']>>().optional(),
  onProofOfDelivery: functionOption<NonNullable<WebhookCallbacks['onProofOfDelivery']>>().optional(),
  onOther: functionOption<NonNullable<WebhookCallbacks['onOther']>>().optional(),
} satisfies OptionShape<WebhookCallbacks>;
const callbackOptions = z.strictObject(CALLBACK_OPTIONS);

/** Checks callbacks; a function alone is `onEvent`. */
export function checkCallbacks(callbacks: EventCallback | WebhookCallbacks): WebhookCallbacks {
  if (typeof callbacks === 'function') return { onEvent: callbacks };
  if (typeof callbacks !== 'object' || callbacks === null) {
    refuseOption('callbacks', 'a function or an object of callbacks', callbacks);
  }
  // The events of a misspelt callback would go to `onOther`, and the response would be 200.
  checkOptions(callbackOptions, callbacks);
  const { onEvent, onEvents, onProofOfDelivery, onOther } = callbacks;
  if (onEvent !== undefined && onEvents !== undefined) {
    throw new ConfigurationError('Both `onEvent` and `onEvents` are set; pass only one of them');
  }
  if ((onEvent ?? onEvents ?? onProofOfDelivery ?? onOther) === undefined) {
    throw new ConfigurationError('No webhook callback is set; pass at least one, such as `onEvent`');
  }
  return callbacks;
}

/** The text before the error in a log line; an error of `parse` is clear without it. */
const ERROR_LINES: Readonly<Record<InboxErrorContext['operation'], string>> = {
  claim:
    'The store could not look up the events of a webhook, so the callback was not called; it is called when the service sends the webhook again. Reason: ',
  renew:
    'The store could not renew the lease of events, so another process may handle these events, too. Reason: ',
  commit:
    'The store could not mark events as handled. This is tried again for ten seconds. If it fails every time, the events are handled again when they come again. Reason: ',
  release:
    'The store could not end the lease of events that were not handled, so another attempt is possible only after `leaseMs`. Reason: ',
  parse: '',
  callback: 'A webhook callback failed',
  deadLetter: '`onDeadLetter` failed: ',
  other: '`onOther` failed: ',
};

/** Longer keys are cut in the text of a log line; the fields of the line contain the whole keys. */
const MAX_KEY_LENGTH = 120;

/** Returns an empty text for several keys. */
function describeKey([key = '', ...others]: readonly string[]): string {
  if (key === '' || others.length > 0) return '';
  const item = key.startsWith(`${EVENTS_TOPIC}:`) ? 'event' : 'proof of delivery';
  return ` for the ${item} with the key "${toPrintableLine(key, MAX_KEY_LENGTH)}"`;
}

function logErrors(logger: Logger | undefined): NonNullable<InboxOptions['onError']> {
  const log = resolveLogger(logger);
  const countLeftOut = limitLines();
  return (error, { operation, keys }) => {
    // While the store is down, every webhook fails in the same way.
    const isOfStore = ['claim', 'renew', 'commit', 'release'].includes(operation);
    const leftOut = isOfStore ? countLeftOut() : 0;
    if (leftOut === undefined) return;
    const fields = { keys, err: error, ...(leftOut > 0 && { similarLinesLeftOut: leftOut }) };
    const end = operation === 'callback' ? `${describeKey(keys)}: ` : '';
    log.error(ERROR_LINES[operation] + end + formatError(error), fields);
  };
}

export const INBOX_OPTIONS = {
  store: option<DedupeStore>(
    'a DedupeStore such as `new MemoryDedupeStore()`, with `claim`, `commit` and `release`',
    (store) => hasMethods(store, 'claim', 'commit', 'release'),
  ),
  leaseMs: countOption(1).and(timeoutOption).default(60_000),
  // If a key were forgotten before the sender gives up (docs/service.md 8.5), a late redelivery would be handled again.
  retainMs: z
    .int(rule(`a whole number of milliseconds of at least ${OUTLASTS_SENDER_MS} (7 days)`))
    .min(OUTLASTS_SENDER_MS)
    .default(DEFAULT_RETAIN_MS),
  maxAttempts: countOption(1).optional(),
  onDeadLetter: functionOption<DeadLetterCallback>().optional(),
  callbackTimeoutMs: timeoutOption.default(600_000),
  onError: functionOption<NonNullable<InboxOptions['onError']>>().optional(),
  // `resolveLogger` checks the logger.
  logger: z.custom<Logger>().optional(),
} satisfies OptionShape<WebhookInboxOptions>;
const inboxOptions = z.strictObject(INBOX_OPTIONS);

/** The options of an inbox, checked and filled in. */
export type InboxSettings = ReturnType<typeof resolveInboxOptions>;

export function resolveInboxOptions(options: WebhookInboxOptions) {
  const { maxAttempts, onError, logger, ...settings } = checkOptions(inboxOptions, options);
  const { store, onDeadLetter } = settings;
  if (maxAttempts !== undefined && onDeadLetter === undefined) {
    throw new ConfigurationError(
      '`maxAttempts` is set without `onDeadLetter`; pass `onDeadLetter`, which gets each event after its last attempt',
    );
  }
  const observer = onError ?? logErrors(logger);
  const { commandTimeoutMs = 0 } = store;
  const limitsItself = Number.isFinite(commandTimeoutMs) && commandTimeoutMs > 0;
  return {
    ...settings,
    needsTimeLimit: !limitsItself && !isMemoryStore(store),
    storeTimeoutMs: limitsItself ? Math.min(commandTimeoutMs, MAX_TIMER_MS) : DEFAULT_STORE_TIMEOUT_MS,
    maxAttempts: maxAttempts ?? 10,
    onError: (error: unknown, operation: InboxErrorContext['operation'], keys: readonly string[]) =>
      callGuarded(() => observer(error, { operation, keys })),
    // Each field is reported to `onError` once, because a field that the service changed breaks the schema in every webhook.
    knownMismatches: new Set<string>(),
  };
}

/** A store in memory never waits, so it needs no timer for each call. A method of a subclass or a mock may wait. */
function isMemoryStore(store: DedupeStore): boolean {
  const { claim, commit, release } = MemoryDedupeStore.prototype;
  return store.claim === claim && store.commit === commit && store.release === release;
}

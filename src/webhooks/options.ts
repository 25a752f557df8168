import * as z from 'zod';
import {
  checkOptions,
  countOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-checks.ts';
import { ConfigurationError } from '../errors.ts';
import { formatError, type Logger, resolveLogger } from '../observability/logger.ts';
import type { WebhookEvent } from '../schemas/webhook.ts';
import type { CallbackContext } from './callbacks.ts';
import { type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';
import { notify } from './report.ts';
import type { WorkItem } from './work.ts';

const DEFAULT_RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

/** The second argument of `onDeadLetter`. */
export interface DeadLetterContext extends CallbackContext {
  /** The message that brought the event. */
  readonly message: WorkItem['message'];
  /** The key under which the event is remembered. */
  readonly key: string;
  /** The error of the last try; any value can be thrown. */
  readonly error: unknown;
}

/** What an error was caught at. */
export type InboxOperation =
  | 'claim'
  | 'renew'
  | 'commit'
  | 'release'
  | 'parse'
  | 'callback'
  | 'deadLetter'
  | 'other';

/** The second argument of `onError`. */
export interface InboxErrorContext {
  /** What the error was caught at. */
  readonly operation: InboxOperation;
  /** What was worked on; empty for `parse` and `other`. */
  readonly keys: readonly string[];
}

/** Options of an inbox on a store; a webhook handler takes them as well. */
export interface InboxOptions {
  /** How long an event is leased to one receiver before another may take it, in milliseconds; renewed while work goes on. Default: 60,000. */
  readonly leaseMs?: number | undefined;
  /** How long a handled event is remembered, in milliseconds, at least 7 days. Default: 30 days. */
  readonly retainMs?: number | undefined;
  /**
   * How often an event is tried: when it fails then, it goes to `onDeadLetter`, which this needs. A receiver that leases an event
   * and ends before its callback runs counts as well. Default: 10 with `onDeadLetter`, without limit otherwise.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Takes an event that keeps failing; once it resolves the event is done. The event is undefined for a proof of
   * delivery, which is `context.message`. When it rejects, a redelivery tries again. Default: none.
   */
  readonly onDeadLetter?:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext) => unknown)
    | undefined;
  /** When a callback counts as failed though it still runs, in milliseconds; its `signal` aborts. Default: 600,000. */
  readonly callbackTimeoutMs?: number | undefined;
  /**
   * Told of every error that does not reach you otherwise, of each rejected item of a webhook, and once of each field that is not
   * what it should be. Default: writes to `logger`.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
  /** Where lines go: the console, or a logger of pino, winston, bunyan or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
}

/** Options of `WebhookInbox`. */
export interface WebhookInboxOptions extends InboxOptions {
  /** Remembers what was handled; the one place where all receivers must agree. */
  readonly store: DedupeStore;
}

/** The options that every kind of inbox has, checked and filled in; `Extra` is what it adds to the context of callbacks. */
export interface InboxSettings<Extra extends object = object> {
  readonly retainMs: number;
  /** Infinity without `onDeadLetter`: no attempt is the last one. */
  readonly maxAttempts: number;
  readonly onDeadLetter:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext & Extra) => unknown)
    | undefined;
  readonly callbackTimeoutMs: number;
  /** Never throws. */
  readonly onError: (error: unknown, operation: InboxOperation, keys: readonly string[]) => void;
  /** The fields that `onError` was told of, which every webhook has once the service changed one. */
  readonly knownMismatches: Set<string>;
}

/** The schemas of the options that every kind of inbox has. */
export function buildCommonOptions<Extra extends object>(defaultCallbackTimeoutMs: number) {
  return {
    // A key forgotten before the sender gives up would let a late redelivery be handled again.
    retainMs: countOption(OUTLASTS_SENDER_MS).default(DEFAULT_RETAIN_MS),
    maxAttempts: countOption(1).optional(),
    onDeadLetter: functionOption<NonNullable<InboxSettings<Extra>['onDeadLetter']>>().optional(),
    callbackTimeoutMs: timeoutOption.default(defaultCallbackTimeoutMs),
    onError: functionOption<NonNullable<WebhookInboxOptions['onError']>>().optional(),
    // Checked by `resolveLogger`.
    logger: z.custom<Logger>().optional(),
  };
}

/** Completes the options that every kind of inbox has. */
export function resolveCommonOptions<Extra extends object>(
  options: z.output<z.ZodObject<ReturnType<typeof buildCommonOptions<Extra>>>>,
): InboxSettings<Extra> {
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
    onError: (error, operation, keys) => notify(observer, error, { operation, keys }),
    knownMismatches: new Set(),
  };
}

/** Options of `WebhookInbox`, checked and filled in. */
export interface StoreInboxSettings extends InboxSettings {
  readonly store: DedupeStore;
  readonly leaseMs: number;
}

/** The schemas of the options of `WebhookInbox`. */
export const INBOX_OPTIONS = {
  ...buildCommonOptions<object>(600_000),
  store: option<DedupeStore>(
    'a DedupeStore such as `new MemoryDedupeStore()`, with `claim`, `commit` and `release`',
    (store) => hasMethods(store, 'claim', 'commit', 'release'),
  ),
  leaseMs: countOption(1).and(timeoutOption).default(60_000),
} satisfies OptionShape<WebhookInboxOptions>;
const inboxOptions = z.strictObject(INBOX_OPTIONS);

/** Checks the options of `WebhookInbox`, and fills the defaults in. */
export function resolveInboxOptions(options: WebhookInboxOptions): StoreInboxSettings {
  const { store, leaseMs, ...common } = checkOptions(inboxOptions, options);
  return { store, leaseMs, ...resolveCommonOptions(common) };
}

function logErrors(logger: Logger | undefined): NonNullable<WebhookInboxOptions['onError']> {
  const log = resolveLogger(logger);
  return (error, { operation, keys }) =>
    log.error(`Webhook ${operation} failed: ${formatError(error)}`, { keys, err: error });
}

import { z } from 'zod';
import {
  checkOptions,
  countOption,
  delayOption,
  functionOption,
  hasMethods,
  type OptionShape,
  option,
  timeoutOption,
} from '../common/option-checks.ts';
import { ConfigurationError } from '../errors.ts';
import { formatError, type LogAdapter, type Logger, resolveLogger } from '../observability/logger.ts';
import type { EventsDelivery, ProofOfDelivery, WebhookEvent } from '../schemas/webhook.ts';
import { type DedupeStore, OUTLASTS_SENDER_MS } from './dedupe-store.ts';
import { FlawReporter } from './flaws.ts';
import { notify } from './report.ts';

const DEFAULT_RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

/** What is told to `onDeadLetter` beside the event. */
export interface DeadLetterContext {
  /** What brought the event. */
  readonly delivery: EventsDelivery | ProofOfDelivery;
  /** The name under which the event is remembered. */
  readonly key: string;
  /** How often it was tried. */
  readonly attempt: number;
  /** What the last try threw, whatever it is. */
  readonly error: unknown;
}

/** What the store was asked for when it failed. */
export type StoreOperation = 'claim' | 'renew' | 'commit' | 'release';

/** What an error was caught at. */
export type InboxOperation = StoreOperation | 'parse' | 'handler' | 'deadLetter' | 'snapshot' | 'unhandled';

/** What is told to `onError` beside the error. */
export interface InboxErrorContext {
  /** What the error was caught at. */
  readonly operation: InboxOperation;
  /** What was worked on; empty for `parse`, `snapshot` and `unhandled`. */
  readonly keys: readonly string[];
}

/** Options of `WebhookInbox`. */
export interface WebhookInboxOptions {
  /** Remembers what was handled; the one place where all receivers must agree. */
  readonly store: DedupeStore;
  /** How long an event is leased to one receiver before another may take it, in milliseconds; renewed while work goes on. Default: 60,000. */
  readonly leaseMs?: number | undefined;
  /** How long a handled event is remembered, in milliseconds, at least 7 days. Default: 30 days. */
  readonly retainMs?: number | undefined;
  /**
   * How often an event is tried: when it fails then, it goes to `onDeadLetter`, which this needs. A receiver that leases an event
   * and is shut down before its handler runs counts as well, as a crash would. Default: 10 with `onDeadLetter`, never without.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Takes an event that keeps failing; once it resolves the event is done. The event is undefined for a proof of
   * delivery, which is `context.delivery`. When it rejects, a redelivery tries again.
   */
  readonly onDeadLetter?:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext) => unknown)
    | undefined;
  /** How long to wait for events that another receiver works on, in milliseconds. Default: 8,000. */
  readonly busyBudgetMs?: number | undefined;
  /** When a callback counts as failed though it still runs, in milliseconds; its `signal` aborts. Default: 600,000. */
  readonly handlerTimeoutMs?: number | undefined;
  /**
   * Told of every error that does not reach you otherwise, and of what in a webhook is not what it should be: of each rejected
   * item, and once of each field that was kept as it came. Default: tells `logger`.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
  /** Where lines go: the console, or a logger of pino, winston or NestJS. Default: the console. */
  readonly logger?: Logger | undefined;
}

/** These options of every kind of inbox, checked and filled in; `Extra` is what it adds to the context of callbacks. */
export interface InboxSettings<Extra extends object = object> {
  readonly retainMs: number;
  /** Infinity without `onDeadLetter`: no attempt is the last one. */
  readonly maxAttempts: number;
  readonly onDeadLetter:
    | ((event: WebhookEvent | undefined, context: DeadLetterContext & Extra) => unknown)
    | undefined;
  readonly busyBudgetMs: number;
  readonly handlerTimeoutMs: number;
  /** Never throws. */
  readonly onError: (error: unknown, operation: InboxOperation, keys: readonly string[]) => void;
  /** Tells `onError` what in a webhook is not what it should be. */
  readonly flaws: FlawReporter;
}

/** The schemas of the options that every kind of inbox has. */
export function commonOptions<Extra extends object>(defaultHandlerTimeoutMs: number) {
  return {
    // A key forgotten before the sender gives up would let a late redelivery be handled again.
    retainMs: countOption(OUTLASTS_SENDER_MS).default(DEFAULT_RETAIN_MS),
    maxAttempts: countOption(1).optional(),
    onDeadLetter: functionOption<NonNullable<InboxSettings<Extra>['onDeadLetter']>>().optional(),
    busyBudgetMs: delayOption.default(8_000),
    handlerTimeoutMs: timeoutOption.default(defaultHandlerTimeoutMs),
    onError: functionOption<NonNullable<WebhookInboxOptions['onError']>>().optional(),
    // Checked by what calls it.
    logger: z.custom<Logger>().optional(),
  };
}

/** Completes the options that every kind of inbox has. */
export function inboxSettings<Extra extends object>(
  options: z.output<z.ZodObject<ReturnType<typeof commonOptions<Extra>>>>,
): InboxSettings<Extra> {
  const { maxAttempts, onDeadLetter } = options;
  if (maxAttempts !== undefined && onDeadLetter === undefined) {
    throw new ConfigurationError('Expected `onDeadLetter` beside `maxAttempts`, got none');
  }
  const observer = options.onError ?? logErrors(resolveLogger(options.logger));
  const onError: InboxSettings['onError'] = (error, operation, keys) =>
    notify(observer, error, { operation, keys });
  const flaws = new FlawReporter((error) => onError(error, 'parse', []));
  return {
    ...options,
    onDeadLetter,
    maxAttempts: onDeadLetter === undefined ? Number.POSITIVE_INFINITY : (maxAttempts ?? 10),
    onError,
    flaws,
  };
}

/** Options of `WebhookInbox`, checked and filled in. */
export interface StoreInboxSettings extends InboxSettings {
  readonly store: DedupeStore;
  readonly leaseMs: number;
}

const inboxOptions = z.strictObject({
  ...commonOptions<object>(600_000),
  store: option<DedupeStore>('a DedupeStore with `claim`, `commit` and `release`', (store) =>
    hasMethods(store, 'claim', 'commit', 'release'),
  ),
  leaseMs: countOption(1).and(timeoutOption).default(60_000),
} satisfies OptionShape<WebhookInboxOptions>);

/** Checks the options of `WebhookInbox`, and fills the defaults in. */
export function resolveInboxOptions(options: WebhookInboxOptions): StoreInboxSettings {
  const { store, leaseMs, ...common } = checkOptions(inboxOptions, options);
  return { store, leaseMs, ...inboxSettings(common) };
}

function logErrors(logger: LogAdapter): NonNullable<WebhookInboxOptions['onError']> {
  return (error, { operation, keys }) =>
    logger.error(`Webhook ${operation} failed: ${formatError(error)}`, { keys, err: error });
}

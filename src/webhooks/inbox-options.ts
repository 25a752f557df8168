import { checkCount, checkKnownOptions, checkTimeoutMs } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';
import type { EventsDelivery, ProofOfDelivery, WebhookEvent } from '../schemas/webhook.ts';
import type { DedupeStore } from './dedupe-store.ts';
import type { StoreOperation } from './key-lease.ts';
import { type RunSettings, resolveRunOptions } from './run-options.ts';

const OPTION_NAMES = [
  'store',
  'leaseMs',
  'retainMs',
  'maxAttempts',
  'onDeadLetter',
  'busyBudgetMs',
  'handlerTimeoutMs',
  'onError',
] as const satisfies readonly (keyof WebhookInboxOptions)[];

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
   * item, and once of each field that was kept as it came. Default: writes it to `console.error`.
   */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
}

/** Options of an inbox, checked and filled in. */
export interface InboxSettings extends RunSettings<NonNullable<WebhookInboxOptions['onDeadLetter']>> {
  readonly store: DedupeStore;
  readonly leaseMs: number;
}

/** Checks the options of an inbox and fills the defaults in. */
export function resolveInboxOptions(options: WebhookInboxOptions): InboxSettings {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { store } = options;
  for (const method of ['claim', 'commit', 'release'] as const) {
    if (typeof store?.[method] === 'function') continue;
    throw new ConfigurationError(
      `Expected \`store\` to be a DedupeStore, got ${kindOf(store)} without \`${method}\``,
    );
  }
  return {
    store,
    leaseMs: checkTimeoutMs('leaseMs', checkCount('leaseMs', options.leaseMs ?? 60_000, 1)),
    ...resolveRunOptions(options, 600_000),
  };
}

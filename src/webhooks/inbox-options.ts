import { ConfigurationError } from '../errors.ts';
import { checkCount, checkDelayMs, checkKnownOptions, checkTimeoutMs } from '../option-checks.ts';
import type { EventsDelivery, ProofOfDelivery, WebhookEvent } from '../schemas/webhook.ts';
import { kindOf } from '../validation.ts';
import type { DedupeStore } from './dedupe-store.ts';
import { checkFunction } from './function-check.ts';
import type { StoreOperation } from './key-lease.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** The sender tries for six days; a key forgotten before would let a late redelivery be handled again. */
const MIN_RETAIN_MS = 7 * DAY_MS;

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
  readonly delivery: EventsDelivery | ProofOfDelivery;
  /** The name under which the event is remembered. */
  readonly key: string;
  /** How often it was tried. */
  readonly attempt: number;
  /** What the last try threw, whatever it is. */
  readonly error: unknown;
}

/** What an error was caught at. */
export type InboxOperation = StoreOperation | 'handler' | 'deadLetter' | 'snapshot' | 'unhandled';

/** What is told to `onError` beside the error. */
export interface InboxErrorContext {
  readonly operation: InboxOperation;
  /** What was worked on; empty for `snapshot` and `unhandled`. */
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
  /** After how many failed tries an event goes to `onDeadLetter`; needs that option. Default: 10 with it, never without. */
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
  /** Told of every error that does not reach you otherwise. Default: writes it to `console.error`. */
  readonly onError?: ((error: unknown, context: InboxErrorContext) => void) | undefined;
}

/** Options of an inbox, checked and filled in. */
export interface InboxSettings {
  readonly store: DedupeStore;
  readonly leaseMs: number;
  readonly retainMs: number;
  readonly maxAttempts: number;
  readonly onDeadLetter: WebhookInboxOptions['onDeadLetter'];
  readonly busyBudgetMs: number;
  readonly handlerTimeoutMs: number;
  readonly onError: (error: unknown, context: InboxErrorContext) => void;
}

/** Checks the options of an inbox and fills the defaults in. */
export function resolveInboxOptions(options: WebhookInboxOptions): InboxSettings {
  checkKnownOptions('options', options, OPTION_NAMES);
  const { store, onDeadLetter, onError } = options;
  for (const method of ['claim', 'commit', 'release'] as const) {
    if (typeof store?.[method] === 'function') continue;
    throw new ConfigurationError(
      `Expected \`store\` to be a DedupeStore, got ${kindOf(store)} without \`${method}\``,
    );
  }
  checkFunction('onDeadLetter', onDeadLetter);
  checkFunction('onError', onError);
  if (options.maxAttempts !== undefined && onDeadLetter === undefined) {
    throw new ConfigurationError('Expected `onDeadLetter` beside `maxAttempts`, got none');
  }
  return {
    store,
    leaseMs: checkTimeoutMs('leaseMs', checkCount('leaseMs', options.leaseMs ?? 60_000, 1)),
    retainMs: checkCount('retainMs', options.retainMs ?? 30 * DAY_MS, MIN_RETAIN_MS),
    maxAttempts: checkCount('maxAttempts', options.maxAttempts ?? 10, 1),
    onDeadLetter,
    busyBudgetMs: checkDelayMs('busyBudgetMs', options.busyBudgetMs ?? 8_000),
    handlerTimeoutMs: checkTimeoutMs('handlerTimeoutMs', options.handlerTimeoutMs ?? 600_000),
    onError: harmless(onError ?? logError),
  };
}

function logError(error: unknown, { operation, keys }: InboxErrorContext): void {
  console.error(`tracking-client: webhook ${operation} failed`, { keys, error });
}

/** An observer that fails must not cost an event. */
function harmless<Arguments extends unknown[]>(
  observer: (...given: Arguments) => void,
): (...given: Arguments) => void {
  return (...given) => {
    try {
      observer(...given);
    } catch {
      // Nothing is left to tell it to.
    }
  };
}

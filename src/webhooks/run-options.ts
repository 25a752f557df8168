import { checkCount, checkDelayMs, checkTimeoutMs } from '../common/option-checks.ts';
import { ConfigurationError } from '../errors.ts';
import { checkFunction } from './function-check.ts';
import type { InboxErrorContext, WebhookInboxOptions } from './inbox-options.ts';
import { OUTLASTS_SENDER_MS } from './sender-schedule.ts';
import { tell } from './tell.ts';

const DEFAULT_RETAIN_MS = 30 * 24 * 60 * 60 * 1000;

/** The options that every kind of inbox has; `DeadLetter` is what it calls for an event that keeps failing. */
export interface RunOptions<DeadLetter>
  extends Pick<
    WebhookInboxOptions,
    'retainMs' | 'maxAttempts' | 'busyBudgetMs' | 'handlerTimeoutMs' | 'onError'
  > {
  readonly onDeadLetter?: DeadLetter | undefined;
}

/** These options, checked and filled in. */
export interface RunSettings<DeadLetter> {
  readonly retainMs: number;
  readonly maxAttempts: number;
  readonly onDeadLetter: DeadLetter | undefined;
  readonly busyBudgetMs: number;
  readonly handlerTimeoutMs: number;
  readonly onError: (error: unknown, context: InboxErrorContext) => void;
}

/** Checks the options that every kind of inbox has, and fills the defaults in. */
export function resolveRunOptions<DeadLetter>(
  options: RunOptions<DeadLetter>,
  defaultHandlerTimeoutMs: number,
): RunSettings<DeadLetter> {
  const { onDeadLetter, onError } = options;
  checkFunction('onDeadLetter', onDeadLetter);
  checkFunction('onError', onError);
  if (options.maxAttempts !== undefined && onDeadLetter === undefined) {
    throw new ConfigurationError('Expected `onDeadLetter` beside `maxAttempts`, got none');
  }
  const handlerTimeoutMs = options.handlerTimeoutMs ?? defaultHandlerTimeoutMs;
  return {
    // A key forgotten before the sender gives up would let a late redelivery be handled again.
    retainMs: checkCount('retainMs', options.retainMs ?? DEFAULT_RETAIN_MS, OUTLASTS_SENDER_MS),
    maxAttempts: checkCount('maxAttempts', options.maxAttempts ?? 10, 1),
    onDeadLetter,
    busyBudgetMs: checkDelayMs('busyBudgetMs', options.busyBudgetMs ?? 8_000),
    handlerTimeoutMs: checkTimeoutMs('handlerTimeoutMs', handlerTimeoutMs),
    onError: (error, context) => tell(onError ?? logError, error, context),
  };
}

function logError(error: unknown, { operation, keys }: InboxErrorContext): void {
  console.error(`tracking-client: webhook ${operation} failed`, { keys, error });
}

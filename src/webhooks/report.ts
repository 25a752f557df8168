import { getKeys, type ItemState, type Plan, type WorkItem } from './items.ts';
import type { ItemIssues, ParsedWebhook } from './parse.ts';

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

/** The result of the calls of `onOther`. */
export interface OtherResult {
  readonly failures: readonly WebhookFailure[];
  readonly isInterrupted: boolean;
}

/** Builds the report from the states of the items, the result of parsing, and the result of `onOther`. */
export function buildReport(
  { jobs, items, others }: Plan,
  { duplicates, rejected }: Pick<ParsedWebhook, 'duplicates' | 'rejected'>,
  { failures, isInterrupted }: OtherResult,
): WebhookReport {
  const select = (state: ItemState) => items.filter((item) => item.state === state);
  const busy = select('busy');
  const retryAfterMs = busy.reduce((min, item) => Math.min(min, item.retryAfterMs), Number.POSITIVE_INFINITY);
  const report: WebhookReport & { outcome: WebhookOutcome } = {
    outcome: 'done',
    handled: select('handled').length,
    duplicates: duplicates + select('duplicate').length,
    deadLettered: select('deadLettered').length,
    others: others.length,
    failures: [...jobs.flatMap((job) => findFailures(job.items)), ...failures],
    busy: getKeys(busy),
    unavailable: getKeys(select('unavailable')),
    interrupted: getKeys(select('interrupted')),
    retryAfterMs: busy.length === 0 ? undefined : retryAfterMs,
    rejected,
  };
  report.outcome = getOutcome(report, isInterrupted);
  return report;
}

/** Groups the failed items of one job by error, because a call of `onEvents` fails for several items at once. */
function findFailures(items: readonly WorkItem[]): WebhookFailure[] {
  const keysOfError = new Map<unknown, string[]>();
  for (const { key, state, error } of items) {
    if (state !== 'failed') continue;
    const keys = keysOfError.get(error);
    if (keys === undefined) keysOfError.set(error, [key]);
    else keys.push(key);
  }
  return [...keysOfError].map(([error, keys]) => ({ keys, error }));
}

function getOutcome(report: WebhookReport, isInterrupted: boolean): WebhookOutcome {
  if (report.failures.length > 0) return 'failed';
  if (report.unavailable.length > 0) return 'unavailable';
  if (report.interrupted.length > 0 || isInterrupted) return 'interrupted';
  if (report.busy.length > 0) return 'busy';
  return report.rejected.length > 0 ? 'rejected' : 'done';
}

import { callGuarded } from '../logging.ts';
import type { EventHandler, WebhookCallbacks } from './callbacks.ts';
import type { ItemIssues } from './flaws.ts';

/**
 * How a webhook went as a whole; the first that applies.
 * - `failed`: a callback threw or rejected
 * - `unavailable`: the store failed before everything was claimed
 * - `interrupted`: a shutdown left work undone
 * - `busy`: another receiver still works on a part
 * - `rejected`: items were not what they should be; all others are done
 * - `done`: nothing is left to do
 */
export type WebhookOutcome = 'failed' | 'unavailable' | 'interrupted' | 'busy' | 'rejected' | 'done';

/** One callback that failed; its key was given back, so a redelivery tries again. */
export interface WebhookFailure {
  /** What was worked on; empty for `onSnapshot` and `onUnhandled`. */
  readonly keys: readonly string[];
  /** What was thrown, whatever it is. */
  readonly error: unknown;
}

/** What became of one webhook, counted in events and proofs of delivery. */
export interface WebhookReport {
  /** How it went as a whole. */
  readonly outcome: WebhookOutcome;
  /** Handled now, by us. */
  readonly handled: number;
  /** Handled before, or repeated inside the payload. */
  readonly duplicates: number;
  /** Given to `onDeadLetter` and done with. */
  readonly deadLettered: number;
  /** Deliveries that reached `onSnapshot`. */
  readonly snapshots: number;
  /** Deliveries that reached `onUnhandled`, or would have. */
  readonly unhandled: number;
  /** The callbacks that failed. */
  readonly failures: readonly WebhookFailure[];
  /** Keys that another receiver still works on. */
  readonly busy: readonly string[];
  /** Keys that could not be claimed, since the store failed. */
  readonly unavailable: readonly string[];
  /** Keys that a shutdown left undone. */
  readonly interrupted: readonly string[];
  /** When the first of the busy leases ends, in milliseconds from now; undefined when nothing is busy. */
  readonly retryAfterMs: number | undefined;
  /** The items that are not what they should be. */
  readonly rejected: readonly ItemIssues[];
}

/** Options of one call of `process`. */
export interface ProcessOptions {
  /** Shortens the inbox's own wait for work that another receiver holds, in milliseconds. Default: not shortened. */
  readonly busyBudgetMs?: number | undefined;
  /** Starts nothing new once it aborts, and is passed on to the callback that runs. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Anything that takes responsibility for webhooks: a `WebhookInbox`, or one of your own. */
export interface WebhookProcessor<Extra extends object = object> {
  /**
   * Handles what is new in a webhook body.
   *
   * @param payload - the body: text, UTF-8 bytes, or JSON that is parsed already
   * @param callbacks - a function for every new event, or `WebhookCallbacks`
   * @param options - see `ProcessOptions`
   * @returns what became of it
   * @throws WebhookParseError when the body is not UTF-8 JSON; ConfigurationError when the callbacks or the options make no sense
   */
  process(
    payload: unknown,
    callbacks: EventHandler<Extra> | WebhookCallbacks<Extra>,
    options?: ProcessOptions,
  ): Promise<WebhookReport>;
}

/** Calls an observer. One that fails, at once or later, must not cost an event, a response or the process. */
export function notify<Given extends unknown[]>(
  observer: ((...given: Given) => unknown) | undefined,
  ...given: Given
): void {
  if (observer !== undefined)
    callGuarded(
      () => observer(...given),
      () => {},
    );
}

/** A report while it is written. */
export type ReportDraft = {
  -readonly [Name in keyof WebhookReport]: WebhookReport[Name] extends readonly (infer Item)[]
    ? Item[]
    : WebhookReport[Name];
};

/** Returns what takes back all that is written to the report from now on. */
export function checkpoint(report: ReportDraft): () => void {
  const { handled, duplicates, deadLettered, retryAfterMs } = report;
  const lists = [report.failures, report.unavailable, report.interrupted];
  const lengths = lists.map(({ length }) => length);
  return () => {
    Object.assign(report, { handled, duplicates, deadLettered, retryAfterMs });
    for (const [index, list] of lists.entries()) list.length = lengths[index] ?? 0;
  };
}

/** Reads the outcome off the rest of a report; `isCutShort`: a shutdown left something undone that has no key. */
export function outcomeOf(report: Omit<WebhookReport, 'outcome'>, isCutShort: boolean): WebhookOutcome {
  if (report.failures.length > 0) return 'failed';
  if (report.unavailable.length > 0) return 'unavailable';
  if (report.interrupted.length > 0 || isCutShort) return 'interrupted';
  if (report.busy.length > 0) return 'busy';
  return report.rejected.length > 0 ? 'rejected' : 'done';
}

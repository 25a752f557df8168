import { callGuarded } from '../common/guarded-call.ts';
import type { EventCallback, WebhookCallbacks } from './callbacks.ts';
import type { ItemIssues } from './parse.ts';
import { getItems, getKeys, type ItemState, type Job, type WorkItem } from './work.ts';

/**
 * How a webhook went as a whole; the first that applies.
 * - `failed`: a callback threw or rejected
 * - `unavailable`: the store failed before everything was handled
 * - `interrupted`: a shutdown left work undone
 * - `busy`: another receiver still works on a part
 * - `rejected`: items were not what they should be; all others are done
 * - `done`: nothing is left to do
 */
export type WebhookOutcome = 'failed' | 'unavailable' | 'interrupted' | 'busy' | 'rejected' | 'done';

/** One callback that failed; its keys were released, so a redelivery tries again. */
export interface WebhookFailure {
  /** What was worked on; empty for `onOther`. */
  readonly keys: readonly string[];
  /** The error; any value can be thrown. */
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
  /** Messages that reached `onOther`, or would have. */
  readonly others: number;
  /** The callbacks that failed. */
  readonly failures: readonly WebhookFailure[];
  /** Keys that another receiver still works on. */
  readonly busy: readonly string[];
  /** Keys that were not handled, since the store failed. */
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
  /** How long to wait for events that another receiver works on, in milliseconds. Default: 8,000. */
  readonly busyTimeoutMs?: number | undefined;
  /** Starts nothing new once it aborts, and is passed on to the callback that runs. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Anything that takes responsibility for webhooks: a `WebhookInbox`, a `TransactionalInbox`, or one of your own. */
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
    callbacks: EventCallback<Extra> | WebhookCallbacks<Extra>,
    options?: ProcessOptions,
  ): Promise<WebhookReport>;
}

/** Calls an observer. One that fails, at once or later, must not cost an event, a response or the process. */
export function notify<Arguments extends unknown[]>(
  observer: ((...args: Arguments) => unknown) | undefined,
  ...args: Arguments
): void {
  if (observer === undefined) return;
  callGuarded(
    () => observer(...args),
    () => {},
  );
}

/** The parts of a report about things that have no key. */
interface KeylessReport extends Pick<WebhookReport, 'duplicates' | 'failures' | 'rejected' | 'others'> {
  /** Whether a shutdown kept messages from `onOther`. */
  readonly isInterrupted: boolean;
}

/** Reads a report off the items of a webhook once all of them have their last state. */
export function buildReport(jobs: readonly Job<never>[], keyless: KeylessReport): WebhookReport {
  const items = getItems(jobs);
  const select = (state: ItemState) => items.filter((item) => item.state === state);
  const busy = select('busy');
  // Not `Math.min` of all, whose arguments overflow the stack at 150,000 items.
  let retryAfterMs = Number.POSITIVE_INFINITY;
  for (const item of busy) retryAfterMs = Math.min(retryAfterMs, item.retryAfterMs);
  const report = {
    handled: select('handled').length,
    duplicates: keyless.duplicates + select('duplicate').length,
    deadLettered: select('deadLettered').length,
    others: keyless.others,
    failures: [...jobs.flatMap((job) => findFailures(job.items)), ...keyless.failures],
    busy: getKeys(busy),
    unavailable: getKeys(select('unavailable')),
    interrupted: getKeys(select('interrupted')),
    retryAfterMs: busy.length === 0 ? undefined : retryAfterMs,
    rejected: keyless.rejected,
  };
  return { outcome: getOutcome(report, keyless.isInterrupted), ...report };
}

/** One failure for each error, with the keys it was about: a call of `onEvents` fails for several items at once. */
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

function getOutcome(report: Omit<WebhookReport, 'outcome'>, isInterrupted: boolean): WebhookOutcome {
  if (report.failures.length > 0) return 'failed';
  if (report.unavailable.length > 0) return 'unavailable';
  if (report.interrupted.length > 0 || isInterrupted) return 'interrupted';
  if (report.busy.length > 0) return 'busy';
  return report.rejected.length > 0 ? 'rejected' : 'done';
}

import { callGuarded } from '../common/guarded-call.ts';
import {
  Cancellation,
  callWithTimeout,
  type EventHandler,
  type ItemOutcome,
  type WebhookCallbacks,
  type WorkItem,
  type WorkPlan,
  type WorkUnit,
} from './callbacks.ts';
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

/** When to come again for what this process works on, in milliseconds: its end cannot be known. */
const RETRY_AFTER_MS = 1_000;

/** What a report tells of things that have no key. */
export interface KeylessReport
  extends Pick<WebhookReport, 'duplicates' | 'failures' | 'rejected' | 'snapshots' | 'unhandled'> {
  /** Whether a shutdown left some of it undone. */
  readonly isCutShort: boolean;
}

/** What is asked of an inbox's settings here. */
interface AnnouncementSettings {
  readonly handlerTimeoutMs: number;
  readonly onError: (error: unknown, operation: 'snapshot' | 'unhandled', keys: readonly string[]) => void;
}

/** Calls `onSnapshot` and `onUnhandled`, which are not deduplicated, once all items have their outcomes. */
export async function announce<Extra extends object>(
  { handlerTimeoutMs, onError }: AnnouncementSettings,
  { units, snapshots, unhandled, callbacks }: WorkPlan<Extra>,
  signal: AbortSignal | undefined,
): Promise<Pick<KeylessReport, 'failures' | 'snapshots' | 'isCutShort'>> {
  const failures: WebhookFailure[] = [];
  const announced = { failures, snapshots: 0, isCutShort: false };
  const { onSnapshot, onUnhandled } = callbacks;
  const call = async (callback: () => unknown, operation: 'snapshot' | 'unhandled') => {
    // It must come again, or nobody ever sees it.
    if (signal?.aborted === true) announced.isCutShort = true;
    try {
      if (announced.isCutShort) return false;
      // These callbacks get no signal that an abort could be passed on to.
      await callWithTimeout(callback, handlerTimeoutMs, new Cancellation(undefined));
      return true;
    } catch (error) {
      onError(error, operation, []);
      failures.push({ keys: [], error });
      return false;
    }
  };
  if (onSnapshot !== undefined) {
    const touched = new Set<unknown>();
    for (const { items } of units)
      for (const { outcome, delivery } of items) if (outcome !== 'duplicate') touched.add(delivery);
    for (const delivery of snapshots) {
      if (touched.has(delivery)) continue;
      if (await call(() => onSnapshot(delivery), 'snapshot')) announced.snapshots += 1;
    }
  }
  if (onUnhandled !== undefined) {
    for (const delivery of unhandled) await call(() => onUnhandled(delivery), 'unhandled');
  }
  return announced;
}

/** Reads a report off the items of a webhook once it is through with them. */
export function reportOn(units: readonly WorkUnit<never>[], keyless: KeylessReport): WebhookReport {
  const keys: Record<ItemOutcome | 'busy', string[]> = {
    handled: [],
    duplicate: [],
    deadLettered: [],
    failed: [],
    busy: [],
    unavailable: [],
    interrupted: [],
  };
  const failures: WebhookFailure[] = [];
  let retryAfterMs: number | undefined;
  for (const { items } of units) {
    for (const { key, outcome = 'busy', claim } of items) {
      keys[outcome].push(key);
      if (outcome !== 'busy') continue;
      const leaseMs = claim?.status === 'busy' ? claim.retryAfterMs : RETRY_AFTER_MS;
      retryAfterMs = Math.min(leaseMs, retryAfterMs ?? leaseMs);
    }
    if (items.some(({ outcome }) => outcome === 'failed')) failures.push(...failuresOf(items));
  }
  failures.push(...keyless.failures);
  const { busy, unavailable, interrupted } = keys;
  const { duplicates, snapshots, unhandled, rejected } = keyless;
  const counted = {
    handled: keys.handled.length,
    duplicates: duplicates + keys.duplicate.length,
    deadLettered: keys.deadLettered.length,
    snapshots,
    unhandled,
    failures,
    busy,
    unavailable,
    interrupted,
    retryAfterMs,
    rejected,
  };
  return { outcome: outcomeOf(counted, keyless.isCutShort), ...counted };
}

/** One failure an error, with the keys it was about. */
function failuresOf(items: readonly WorkItem[]): WebhookFailure[] {
  const keysOfError = new Map<unknown, string[]>();
  for (const { key, outcome, error } of items) {
    if (outcome === 'failed') keysOfError.set(error, [...(keysOfError.get(error) ?? []), key]);
  }
  return [...keysOfError].map(([error, keys]) => ({ keys, error }));
}

function outcomeOf(report: Omit<WebhookReport, 'outcome'>, isCutShort: boolean): WebhookOutcome {
  if (report.failures.length > 0) return 'failed';
  if (report.unavailable.length > 0) return 'unavailable';
  if (report.interrupted.length > 0 || isCutShort) return 'interrupted';
  if (report.busy.length > 0) return 'busy';
  return report.rejected.length > 0 ? 'rejected' : 'done';
}

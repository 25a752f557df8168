import { getTrackerName } from '../common/event-keys.ts';
import { sortByEvent } from '../events/order.ts';
import type { WebhookEvent } from '../schemas/event.ts';
import type { EventsMessage, ProofOfDelivery, WebhookMessage } from '../schemas/webhook.ts';
import type { Claim } from './dedupe-store.ts';
import type { CallbackContext, WebhookCallbacks } from './inbox-options.ts';
import type { ItemIssues, KeyedMessage, ParsedWebhook } from './parse.ts';

/**
 * The state of an item, and what can follow it:
 * - waiting: its turn has not come. The claim makes it claimed, busy, duplicate or unavailable.
 * - busy: another receiver works on it. The claim is tried again after a pause. When the time is up, busy items stay busy, and
 *   waiting items become busy.
 * - claimed: this receiver has the lease. The callback makes it handled or failed; at the last attempt, `onDeadLetter` makes it
 *   deadLettered or failed. It becomes interrupted after a shutdown, unavailable if its lease ends, and busy or duplicate if a
 *   renewal finds that another receiver took it over.
 * - putOff: without `onDeadLetter`, an event with more than `maxAttempts` attempts, because it may crash the process. It is
 *   released, and becomes waiting again after all other jobs. When the time is up, it becomes busy.
 *
 * The other states are final. Handled and dead-lettered items are committed, and items that this receiver did not finish are
 * released. Items that wait or were put off become interrupted after a shutdown, and unavailable if the store is down.
 */
export type ItemState =
  | 'waiting'
  | 'busy'
  | 'claimed'
  | 'putOff'
  | 'handled'
  | 'duplicate'
  | 'deadLettered'
  | 'failed'
  | 'unavailable'
  | 'interrupted';

/** An event or a proof of delivery, which is handled once. */
export interface WorkItem {
  readonly key: string;
  readonly account: string | undefined;
  readonly message: EventsMessage | ProofOfDelivery;
  /** Undefined for a proof of delivery. */
  readonly event: WebhookEvent | undefined;
  state: ItemState;
  attempt: number;
  /** How long another receiver's lease lasts, in milliseconds from the last claim. Infinity if no claim has found such a lease. */
  retryAfterMs: number;
  error: unknown;
}

/** One call of a callback, which handles all of its items or none. */
export interface Job {
  /** The name of the tracker. Jobs of the same tracker are handled in their order. */
  readonly tracker: string;
  readonly items: readonly WorkItem[];
  /** Calls the callback with those items that were claimed. Adds to the context, because a copy would read its signal. */
  readonly call: (items: readonly WorkItem[], context: CallbackContext) => unknown;
}

export function getKeys(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

/** True for an item that is still to be claimed. */
export function isOpen({ state }: WorkItem): boolean {
  return state === 'waiting' || state === 'busy';
}

export function isClaimed({ state }: WorkItem): boolean {
  return state === 'claimed';
}

export function select(items: readonly WorkItem[], ...states: readonly ItemState[]): WorkItem[] {
  return items.filter(({ state }) => states.includes(state));
}

/** True if the store failed, or if the lease could not be renewed in time. Then this webhook is not handled any further. */
export function isStoreDown(items: readonly WorkItem[]): boolean {
  return items.some(({ state }) => state === 'unavailable');
}

export function setState(items: readonly WorkItem[], state: ItemState): void {
  for (const item of items) item.state = state;
}

export function applyClaim(item: WorkItem, claim: Claim): void {
  if (claim.status === 'acquired') {
    item.state = 'claimed';
    item.attempt = claim.attempt;
  } else if (claim.status === 'busy') {
    item.state = 'busy';
    item.retryAfterMs = claim.retryAfterMs;
  } else {
    item.state = 'duplicate';
  }
}

/** The work of one webhook. */
export interface Plan {
  readonly jobs: readonly Job[];
  /** The items of all jobs. */
  readonly items: readonly WorkItem[];
  /** The messages for `onOther`. */
  readonly others: readonly WebhookMessage[];
  readonly account: string | undefined;
}

/** Assigns messages to callbacks. */
export function planJobs(
  messages: readonly KeyedMessage[],
  { onEvent, onEvents, onProofOfDelivery }: WebhookCallbacks,
  account: string | undefined,
): Plan {
  const jobs: Job[] = [];
  const others: WebhookMessage[] = [];
  const eventsOfTracker = new Map<string, EventItem[]>();

  for (const { message, keys } of messages) {
    const [key] = keys;
    if (key === undefined) {
      others.push(message);
    } else if (message.kind === 'proofOfDelivery' && onProofOfDelivery !== undefined) {
      jobs.push({
        tracker: getTrackerName(message.tracker),
        items: [createItem(key, account, message, undefined)],
        call: (_, context) => onProofOfDelivery(message, Object.assign(context, { key })),
      });
    } else if (message.kind === 'events' && onEvents !== undefined) {
      jobs.push({
        tracker: getTrackerName(message.tracker),
        items: sortByEvent(createEventItems(keys, account, message), ({ event }) => event),
        call: (items, context) =>
          onEvents(
            { ...message, events: items.flatMap(({ event }) => event ?? []) },
            Object.assign(context, { keys: getKeys(items) }),
          ),
      });
    } else if (message.kind === 'events' && onEvent !== undefined) {
      // Two messages of one webhook may be about the same tracker, so their events are sorted together.
      const tracker = getTrackerName(message.tracker);
      const items = eventsOfTracker.get(tracker) ?? [];
      for (const item of createEventItems(keys, account, message)) items.push(item);
      eventsOfTracker.set(tracker, items);
    } else {
      others.push(message);
    }
  }
  // Sort the trackers, so that the order of the messages does not matter.
  for (const tracker of [...eventsOfTracker.keys()].sort()) {
    for (const item of sortByEvent(eventsOfTracker.get(tracker) ?? [], ({ event }) => event)) {
      const { key, message, event } = item;
      jobs.push({
        tracker,
        items: [item],
        call: (_, context) => onEvent?.(event, Object.assign(context, { message, key })),
      });
    }
  }
  return { jobs, items: jobs.flatMap(({ items }) => items), others, account };
}

type EventItem = WorkItem & { readonly message: EventsMessage; readonly event: WebhookEvent };

function createItem<Message, Event>(
  key: string,
  account: string | undefined,
  message: Message,
  event: Event,
) {
  return {
    key,
    account,
    message,
    event,
    state: 'waiting' as const,
    attempt: 1,
    retryAfterMs: Number.POSITIVE_INFINITY,
    error: undefined,
  };
}

function createEventItems(
  keys: readonly string[],
  account: string | undefined,
  message: EventsMessage,
): EventItem[] {
  return message.events.map((event, index) => createItem(keys[index] ?? '', account, message, event));
}

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

/** A callback that failed. Its keys were released, so the next delivery calls the callback again. */
export interface WebhookFailure {
  /** The keys of its events; empty for `onOther`. */
  readonly keys: readonly string[];
  /** The value that the callback threw. */
  readonly error: unknown;
}

/** The result of one webhook, counted in events and proofs of delivery. */
export interface WebhookReport {
  /** The outcome of the whole webhook. */
  readonly outcome: WebhookOutcome;
  /** The account that the webhook was for, if you named one. */
  readonly account: string | undefined;
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
  /** Keys that another receiver still works on, and keys that wait for these. */
  readonly busy: readonly string[];
  /** Keys that were not handled because the store failed. */
  readonly unavailable: readonly string[];
  /** Keys that a shutdown left undone. */
  readonly interrupted: readonly string[];
  /** When the first of the busy leases ends, in milliseconds from the last try to claim it; undefined when nothing is busy. */
  readonly retryAfterMs: number | undefined;
  /** The invalid items. */
  readonly rejected: readonly ItemIssues[];
}

/** Builds the report from the states of the items, the result of parsing, and the calls of `onOther`. */
export function buildReport(
  { jobs, items, others, account }: Plan,
  { duplicates, rejected }: Pick<ParsedWebhook, 'duplicates' | 'rejected'>,
  { failures, isInterrupted }: Pick<WebhookReport, 'failures'> & { readonly isInterrupted: boolean },
): WebhookReport {
  const busy = select(items, 'busy');
  const retryAfterMs = busy.reduce((min, item) => Math.min(min, item.retryAfterMs), Number.POSITIVE_INFINITY);
  const report: WebhookReport & { outcome: WebhookOutcome } = {
    outcome: 'done',
    account,
    handled: select(items, 'handled').length,
    duplicates: duplicates + select(items, 'duplicate').length,
    deadLettered: select(items, 'deadLettered').length,
    others: others.length,
    failures: [...jobs.flatMap((job) => findFailures(job.items)), ...failures],
    busy: getKeys(busy),
    unavailable: getKeys(select(items, 'unavailable')),
    interrupted: getKeys(select(items, 'interrupted')),
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

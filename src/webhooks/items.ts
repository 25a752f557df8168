import { withTimeLimit } from '../common/guarded.ts';
import { TrackingError } from '../errors.ts';
import { getTrackerName } from '../events/keys.ts';
import { sortByEvent } from '../events/order.ts';
import type { WebhookEvent } from '../schemas/event.ts';
import type { EventsMessage, ProofOfDelivery, WebhookMessage } from '../schemas/webhook.ts';
import type { Claim } from './dedupe-store.ts';
import type { CallbackContext, WebhookCallbacks } from './options.ts';
import type { KeyedMessage } from './parse.ts';

export type ItemState =
  | 'unclaimed'
  | 'busy'
  // This receiver has the lease and has not handled the item yet.
  | 'claimed'
  // The round has given the item back, and claims it again when its turn comes.
  | 'returned'
  | 'handled'
  | 'duplicate'
  | 'deadLettered'
  | 'failed'
  | 'unavailable'
  | 'interrupted';

/** An event or a proof of delivery, which is handled once. */
export interface WorkItem {
  readonly key: string;
  readonly message: EventsMessage | ProofOfDelivery;
  /** Undefined for a proof of delivery. */
  readonly event: WebhookEvent | undefined;
  state: ItemState;
  attempt: number;
  /** How long the lease of a busy item lasts, in milliseconds from the last claim. */
  retryAfterMs: number;
  error: unknown;
}

/** One call of a callback, which handles all of its items or none. */
export interface Job {
  readonly items: readonly WorkItem[];
  /** Calls the callback with those items that were claimed. */
  readonly call: (items: readonly WorkItem[], context: CallbackContext) => unknown;
}

export function getKeys(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

/** True for an item that the next round claims. */
export function isOpen({ state }: WorkItem): boolean {
  return state === 'unclaimed' || state === 'busy';
}

export function isClaimed({ state }: WorkItem): boolean {
  return state === 'claimed';
}

export function isReturned({ state }: WorkItem): boolean {
  return state === 'returned';
}

/** True for an item that its round must still handle. */
export function isUndone(item: WorkItem): boolean {
  return isClaimed(item) || isReturned(item);
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
}

/** Assigns messages to callbacks. */
export function planJobs(
  messages: readonly KeyedMessage[],
  { onEvent, onEvents, onProofOfDelivery }: WebhookCallbacks,
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
        items: [
          {
            key,
            message,
            event: undefined,
            state: 'unclaimed',
            attempt: 1,
            retryAfterMs: 0,
            error: undefined,
          },
        ],
        call: (_, context) => onProofOfDelivery(message, { ...context, key }),
      });
    } else if (message.kind === 'events' && onEvents !== undefined) {
      jobs.push({
        items: sortByEvent(createEventItems(message, keys), ({ event }) => event),
        call: (items, context) =>
          onEvents(
            { ...message, events: items.flatMap(({ event }) => event ?? []) },
            { ...context, keys: getKeys(items) },
          ),
      });
    } else if (message.kind === 'events' && onEvent !== undefined) {
      // Two messages of one webhook may be about the same tracker, so their events are sorted together.
      const tracker = getTrackerName(message.tracker);
      const items = createEventItems(message, keys);
      eventsOfTracker.set(tracker, eventsOfTracker.get(tracker)?.concat(items) ?? items);
    } else {
      others.push(message);
    }
  }
  // All webhooks visit trackers in the same order. Otherwise two webhooks that write the same rows could deadlock.
  for (const tracker of [...eventsOfTracker.keys()].sort()) {
    for (const item of sortByEvent(eventsOfTracker.get(tracker) ?? [], ({ event }) => event)) {
      const { key, message, event } = item;
      jobs.push({ items: [item], call: (_, context) => onEvent?.(event, { ...context, message, key }) });
    }
  }
  return { jobs, items: jobs.flatMap(({ items }) => items), others };
}

interface EventItem extends WorkItem {
  readonly message: EventsMessage;
  readonly event: WebhookEvent;
}

function createEventItems(message: EventsMessage, keys: readonly string[]): EventItem[] {
  return message.events.map((event, index) => {
    const key = keys[index] ?? '';
    return { key, message, event, state: 'unclaimed', attempt: 1, retryAfterMs: 0, error: undefined };
  });
}

/** Runs a callback. After `timeoutMs`, rejects and aborts `controller`. */
export async function callWithTimeout(
  callback: () => unknown,
  timeoutMs: number,
  controller?: AbortController,
): Promise<void> {
  await withTimeLimit(
    async () => callback(),
    timeoutMs,
    () => {
      const error = new CallbackTimeoutError(timeoutMs);
      controller?.abort(error);
      return error;
    },
  );
}

/** A callback exceeded its time limit, and may still be running. */
export class CallbackTimeoutError extends TrackingError {
  constructor(timeoutMs: number) {
    super(`The webhook callback did not finish within ${timeoutMs} ms (\`callbackTimeoutMs\`)`);
  }
}

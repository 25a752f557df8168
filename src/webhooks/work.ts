import { linkedController } from '../common/abort.ts';
import { isJsonObject, kindOf } from '../common/validation.ts';
import { TrackingError } from '../errors.ts';
import { buildEventKeys, buildProofOfDeliveryKey, getTrackerName } from '../events/keys.ts';
import { sortByEvent } from '../events/order.ts';
import type { EventsMessage, ProofOfDelivery, WebhookEvent, WebhookMessage } from '../schemas/webhook.ts';
import type { CallbackContext, WebhookCallbacks } from './callbacks.ts';
import type { Claim } from './dedupe-store.ts';

/**
 * How far a webhook is with one item.
 * - `open`: not claimed yet; `busy`: another receiver holds it. Both are claimed in the next round.
 * - `claimed`: ours to handle
 * - all others: the outcome
 */
export type ItemState =
  | 'open'
  | 'busy'
  | 'claimed'
  | 'handled'
  | 'duplicate'
  | 'deadLettered'
  | 'failed'
  | 'unavailable'
  | 'interrupted';

/** One thing that is handled once: an event, or a proof of delivery. */
export interface WorkItem {
  readonly key: string;
  readonly message: EventsMessage | ProofOfDelivery;
  /** Undefined for a proof of delivery. */
  readonly event: WebhookEvent | undefined;
  state: ItemState;
  /** Counts from 1. */
  attempt: number;
  /** When the lease of the receiver that holds it ends, in milliseconds from the last look. */
  retryAfterMs: number;
  /** The error that its callback failed with. */
  error: unknown;
}

/** Items that one call of a callback handles, all or none. */
export interface Job<Extra extends object> {
  readonly items: readonly WorkItem[];
  /** Calls the callback for those of the items that were claimed. */
  readonly call: (items: readonly WorkItem[], context: CallbackContext & Extra) => unknown;
}

/** The keys of items, in their order. */
export function getKeys(items: readonly WorkItem[]): string[] {
  return items.map(({ key }) => key);
}

/** The items of jobs, in their order. */
export function getItems(jobs: readonly Job<never>[]): WorkItem[] {
  return jobs.flatMap(({ items }) => items);
}

/** Whether an item is still to be claimed. */
export function isOpen({ state }: WorkItem): boolean {
  return state === 'open' || state === 'busy';
}

/** Whether an item is ours to handle. */
export function isClaimed({ state }: WorkItem): boolean {
  return state === 'claimed';
}

/** Gives items one state. */
export function setState(items: readonly WorkItem[], state: ItemState): void {
  for (const item of items) item.state = state;
}

/** Notes what a claim of an item found. */
export function applyClaim(item: WorkItem, claim: Claim): void {
  switch (claim.status) {
    case 'acquired':
      item.state = 'claimed';
      item.attempt = claim.attempt;
      break;
    case 'busy':
      item.state = 'busy';
      item.retryAfterMs = claim.retryAfterMs;
      break;
    case 'done':
      item.state = 'duplicate';
      break;
    default:
      throw buildReplyError('a status of acquired, busy or done', claim);
  }
}

/**
 * Checks what a store replied to a claim: the type does not bind a store of a user, and an event whose claim is misread is lost.
 *
 * @throws TrackingError when it is not one claim a key
 */
export function checkClaims(claims: unknown, count: number): readonly Claim[] {
  if (!Array.isArray(claims) || claims.length !== count) {
    throw buildReplyError(`a list of ${count} claims`, claims);
  }
  return Array.from(claims, checkClaim);
}

function checkClaim(claim: unknown): Claim {
  if (!isJsonObject(claim)) throw buildReplyError('a claim', claim);
  const { status, attempt, retryAfterMs } = claim;
  switch (status) {
    case 'acquired':
      if (typeof attempt !== 'number' || !Number.isSafeInteger(attempt) || attempt < 1) {
        throw buildReplyError('a whole attempt from 1', attempt);
      }
      return { status, attempt };
    case 'busy':
      if (typeof retryAfterMs !== 'number' || !Number.isFinite(retryAfterMs)) {
        throw buildReplyError('a finite retryAfterMs', retryAfterMs);
      }
      return { status, retryAfterMs };
    case 'done':
      return { status };
    default:
      throw buildReplyError('a status of acquired, busy or done', status);
  }
}

function buildReplyError(wanted: string, got: unknown): TrackingError {
  return new TrackingError(`Expected the store to reply with ${wanted}, got ${kindOf(got)}`);
}

/** Sorts out which callback gets what; `others` are the messages for `onOther`. */
export function planJobs<Extra extends object>(
  messages: readonly WebhookMessage[],
  { onEvent, onEvents, onProofOfDelivery }: WebhookCallbacks<Extra>,
): { readonly jobs: Job<Extra>[]; readonly others: WebhookMessage[] } {
  const jobs: Job<Extra>[] = [];
  const others: WebhookMessage[] = [];
  const eventsOfTracker = new Map<string, EventItem[]>();

  for (const message of messages) {
    if (message.kind === 'proofOfDelivery' && onProofOfDelivery !== undefined) {
      const key = buildProofOfDeliveryKey(message);
      jobs.push({
        items: [createItem({ key, message, event: undefined })],
        call: (_, context) => onProofOfDelivery(message, { ...context, key }),
      });
    } else if (message.kind === 'events' && message.events.length > 0 && onEvents !== undefined) {
      jobs.push({
        items: sortByEvent(createEventItems(message), getEvent),
        call: (items, context) =>
          onEvents(
            { ...message, events: items.flatMap(({ event }) => event ?? []) },
            { ...context, keys: getKeys(items) },
          ),
      });
    } else if (message.kind === 'events' && message.events.length > 0 && onEvent !== undefined) {
      // Two messages of one webhook may be about the same tracker.
      const tracker = getTrackerName(message.tracker);
      const items = createEventItems(message);
      const known = eventsOfTracker.get(tracker);
      if (known === undefined) eventsOfTracker.set(tracker, items);
      // One by one, for the arguments of `push` overflow the stack at 150,000 items.
      else for (const item of items) known.push(item);
    } else {
      others.push(message);
    }
  }
  // Two webhooks whose callbacks write to the same rows of an application lock each other out unless they do it in one order.
  for (const tracker of [...eventsOfTracker.keys()].sort()) {
    for (const item of sortByEvent(eventsOfTracker.get(tracker) ?? [], getEvent)) {
      const { key, message, event } = item;
      jobs.push({ items: [item], call: (_, context) => onEvent?.(event, { ...context, message, key }) });
    }
  }
  return { jobs, others };
}

interface EventItem extends WorkItem {
  readonly message: EventsMessage;
  readonly event: WebhookEvent;
}

function createItem<Identity extends Pick<WorkItem, 'key' | 'message' | 'event'>>(identity: Identity) {
  return {
    ...identity,
    state: 'open' as ItemState,
    attempt: 1,
    retryAfterMs: 0,
    error: undefined as unknown,
  };
}

function createEventItems(message: EventsMessage): EventItem[] {
  const buildKey = buildEventKeys(message);
  return message.events.map((event) => createItem({ key: buildKey(event), message, event }));
}

function getEvent({ event }: EventItem): WebhookEvent {
  return event;
}

/** A call of a callback that is under way. */
export interface CallUnderWay {
  readonly items: readonly WorkItem[];
  /** Aborts the signal that the callback was given. */
  readonly controller: AbortController;
}

/**
 * Calls back, and rejects once that takes too long. The signal aborts with the same error then, and whenever `parent` does.
 *
 * @param onStart - told of the call before it begins
 */
export async function callWithTimeout(
  items: readonly WorkItem[],
  callback: (context: CallbackContext) => unknown,
  timeoutMs: number,
  parent: AbortSignal | undefined,
  onStart: (call: CallUnderWay) => void = () => {},
): Promise<void> {
  const { controller, unsubscribe } = linkedController(parent);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new CallbackTimeoutError(timeoutMs);
      controller.abort(error);
      reject(error);
    }, timeoutMs);
    // A callback that waits for nothing must not keep the process alive.
    timer.unref?.();
  });
  try {
    onStart({ items, controller });
    // A loop, since the arguments of `Math.max` overflow the stack at 150,000 items.
    let attempt = 1;
    for (const item of items) attempt = Math.max(attempt, item.attempt);
    await Promise.race([callback({ attempt, signal: controller.signal }), timeout]);
  } finally {
    clearTimeout(timer);
    unsubscribe();
  }
}

/** A callback took too long, and may still be running. */
export class CallbackTimeoutError extends TrackingError {
  constructor(timeoutMs: number) {
    super(`Expected the webhook callback to finish within ${timeoutMs} ms`);
  }
}

/** A call of a store took too long. It goes on, for no driver can take it back. */
export class StoreTimeoutError extends TrackingError {
  // Named, so that `instanceof` holds across the entry points of the package.
  static override readonly kind: string = 'StoreTimeoutError';

  /** Settles as the call does. */
  readonly #call: Promise<unknown>;

  constructor(limitMs: number, call: Promise<unknown>) {
    super(`Expected the store to respond within ${limitMs} ms`);
    this.#call = call;
  }

  /** Calls back if the call succeeds after all. */
  onLateSuccess(callback: () => void): void {
    this.#call.then(callback, () => {});
  }
}

/** Rejects with a `StoreTimeoutError` when a call of a store takes too long. */
export async function withTimeLimit<Result>(call: () => Promise<Result>, limitMs: number): Promise<Result> {
  const result = call();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreTimeoutError(limitMs, result)), limitMs);
  });
  try {
    return await Promise.race([result, limit]);
  } finally {
    clearTimeout(timer);
  }
}

import { systemClock, unref } from '../common/clock.ts';
import { isJsonObject, kindOf } from '../common/validation.ts';
import { TrackingError } from '../errors.ts';
import { getTrackerName } from '../events/keys.ts';
import { sortByEvent } from '../events/order.ts';
import type { EventsMessage, ProofOfDelivery, WebhookEvent, WebhookMessage } from '../schemas/webhook.ts';
import type { Claim } from './dedupe-store.ts';
import type { KeyedMessage } from './parse.ts';
import type {
  CallbackContext,
  WebhookCallbacks,
  WebhookFailure,
  WebhookOutcome,
  WebhookReport,
} from './processor.ts';

type ItemState =
  | 'open'
  | 'busy'
  // This receiver holds the lease and has not handled the item yet.
  | 'claimed'
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

export function getItems(jobs: readonly Job[]): WorkItem[] {
  return jobs.flatMap(({ items }) => items);
}

export function isOpen({ state }: WorkItem): boolean {
  return state === 'open' || state === 'busy';
}

export function isClaimed({ state }: WorkItem): boolean {
  return state === 'claimed';
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

/** Checks the reply of a store: a user's store may break the types, and a misread claim would lose an event. */
export function checkClaims(reply: unknown, count: number): readonly Claim[] {
  // `Array.from` turns holes into `undefined`, because `every` would skip holes.
  const claims: unknown[] = Array.isArray(reply) ? Array.from(reply) : [];
  if (claims.length === count && claims.every(isClaim)) return claims;
  const index = claims.findIndex((claim) => !isClaim(claim));
  const got = claims.length === count ? `an invalid claim at index ${index}` : kindOf(reply);
  throw new TrackingError(
    `Expected the store to reply with ${count} claims, each { status: 'acquired', attempt: 1 }, ` +
      `{ status: 'busy', retryAfterMs: 1000 } or { status: 'done' }, got ${got}`,
  );
}

function isClaim(claim: unknown): claim is Claim {
  if (!isJsonObject(claim)) return false;
  const { status, attempt, retryAfterMs } = claim;
  if (status === 'acquired') return Number.isSafeInteger(attempt) && Number(attempt) >= 1;
  if (status === 'busy') return Number.isFinite(retryAfterMs);
  return status === 'done';
}

/** Assigns messages to callbacks; `others` are the messages for `onOther`. */
export function planJobs(
  messages: readonly KeyedMessage[],
  { onEvent, onEvents, onProofOfDelivery }: WebhookCallbacks,
): { readonly jobs: Job[]; readonly others: WebhookMessage[] } {
  const jobs: Job[] = [];
  const others: WebhookMessage[] = [];
  const eventsOfTracker = new Map<string, EventItem[]>();

  for (const { message, keys } of messages) {
    const [key] = keys;
    if (key === undefined) {
      others.push(message);
    } else if (message.kind === 'proofOfDelivery' && onProofOfDelivery !== undefined) {
      jobs.push({
        items: [{ key, message, event: undefined, ...UNCLAIMED }],
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
      const known = eventsOfTracker.get(tracker);
      if (known === undefined) eventsOfTracker.set(tracker, items);
      // Items are added one by one, because the arguments of `push` overflow the stack at 150,000 items.
      else for (const item of items) known.push(item);
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
  return { jobs, others };
}

interface EventItem extends WorkItem {
  readonly message: EventsMessage;
  readonly event: WebhookEvent;
}

const UNCLAIMED = { state: 'open', attempt: 1, retryAfterMs: 0, error: undefined } as const;

function createEventItems(message: EventsMessage, keys: readonly string[]): EventItem[] {
  return message.events.map((event, index) => ({ key: keys[index] ?? '', message, event, ...UNCLAIMED }));
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
    super(`Expected the webhook callback to finish within ${timeoutMs} ms`);
  }
}

/** A call of a store exceeded its time limit. The call goes on, because no driver can cancel it. */
export class StoreTimeoutError extends TrackingError {
  // `instanceof` compares this name, so that it also works for a class that another entry point bundles.
  static override readonly kind: string = 'StoreTimeoutError';

  readonly #call: Promise<unknown>;

  constructor(limitMs: number, call: Promise<unknown>) {
    super(`Expected the store to respond within ${limitMs} ms`);
    this.#call = call;
  }

  onLateSuccess(callback: () => void): void {
    this.#call.then(callback, () => {});
  }
}

/** Rejects when a call takes longer than `limitMs`; by default the call is one of a store. */
export async function withTimeLimit<Result>(
  call: () => Promise<Result>,
  limitMs: number,
  buildError: (call: Promise<Result>) => Error = (late) => new StoreTimeoutError(limitMs, late),
): Promise<Result> {
  const result = call();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = systemClock.setTimeout(() => reject(buildError(result)), limitMs);
    // This timer alone must not keep the process alive.
    unref(timer);
  });
  try {
    return await Promise.race([result, limit]);
  } finally {
    systemClock.clearTimeout(timer);
  }
}

/** Builds the report from the outcomes of the items and what is known about messages without a key. */
export function buildReport(
  jobs: readonly Job[],
  keyless: Pick<WebhookReport, 'duplicates' | 'failures' | 'rejected' | 'others'> & {
    isInterrupted: boolean;
  },
): WebhookReport {
  const items = getItems(jobs);
  const select = (state: ItemState) => items.filter((item) => item.state === state);
  const busy = select('busy');
  const retryAfterMs = busy.reduce((min, item) => Math.min(min, item.retryAfterMs), Number.POSITIVE_INFINITY);
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

function getOutcome(report: Omit<WebhookReport, 'outcome'>, isInterrupted: boolean): WebhookOutcome {
  if (report.failures.length > 0) return 'failed';
  if (report.unavailable.length > 0) return 'unavailable';
  if (report.interrupted.length > 0 || isInterrupted) return 'interrupted';
  if (report.busy.length > 0) return 'busy';
  return report.rejected.length > 0 ? 'rejected' : 'done';
}

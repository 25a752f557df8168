import { isFilled, readInstant } from './fields.ts';
import { compare, type OrderableEvent, sortEvents } from './order.ts';
import { STATUS_MILESTONES } from './statuses.ts';

/** The status of a shipment as plain JSON, to store beside the order. */
export interface ShipmentStatus {
  /** Milestone of the shipment, such as `in_transit` (docs/service.md 5.4). */
  readonly milestone: string;
  /** Status code of the shipment, such as `delivery_available_for_pickup`, if the service gave one. */
  readonly code?: string;
  /** When the shipment reached the milestone, in one of the forms of an `occurrenceDatetime`. */
  readonly reachedAt?: string;
  /** When the service said so, as it wrote the time. */
  readonly at: string;
  /** Where the status comes from. If two pieces of news have the same time, the webhook wins. */
  readonly source?: 'webhook' | 'results';
}

interface StatusParts {
  readonly shipment?:
    | {
        readonly statusMilestone?: string | null | undefined;
        readonly statusCode?: string | null | undefined;
      }
    | null
    | undefined;
  readonly statistics?: { readonly timestamps?: object | null | undefined } | null | undefined;
  readonly events?: readonly StatusEvent[] | null | undefined;
}

interface StatusEvent extends OrderableEvent {
  readonly statusMilestone?: string | null | undefined;
}

/** News about a shipment: a message of a webhook, an update of a poll, an item of `resultsMany`, or results and their `readAt`. */
export interface StatusNews extends StatusParts {
  /** Metadata of a webhook's message; its `generatedAt` is the time of the news. */
  readonly metadata?: { readonly generatedAt?: string | null | undefined } | null | undefined;
  /** Results of the tracker, in an update of a poll or an item of `resultsMany`. */
  readonly tracking?: StatusParts | undefined;
  /** When the results were read, as an ISO 8601 time; it is the time of the news. */
  readonly readAt?: string | undefined;
}

/** The result of `advanceStatus`. */
export interface StatusAdvance {
  /** The status to store; undefined if nothing is known yet. */
  readonly status: ShipmentStatus | undefined;
  /** True if the milestone is another one than before. */
  readonly changed: boolean;
  /** The status that was stored before. */
  readonly previous: ShipmentStatus | undefined;
}

/**
 * Decides whether news change the status of a shipment. News come late, twice and in any order; the news that the service wrote last
 * win, even if the milestone goes back (docs/service.md 5.6, 8.3). Of two with the same time, the webhook wins, then the later
 * milestone of `STATUS_MILESTONES`. Whatever the order of the news, the last status is the same.
 *
 * Read the stored status with `SELECT … FOR UPDATE` in the transaction that writes it, because two webhooks can come at once.
 *
 * @param saved - the status that you stored; undefined or null at first
 * @param news - the message of a webhook, an update of `poll`, `pollMany` or `pollOnce`, an item of `resultsMany`, or
 * `{ tracking, readAt }` with the results of a call and an ISO 8601 time from before the call. News without a milestone or a readable
 * time change nothing
 * @returns the status to store, and whether to notify the customer
 * @example
 * const { status, changed } = advanceStatus(order.status, message);
 * if (changed) await notify(order, status);
 */
export function advanceStatus(saved: ShipmentStatus | null | undefined, news: StatusNews): StatusAdvance {
  const previous = saved ?? undefined;
  const next = readStatus(news);
  if (next === undefined || (previous !== undefined && compareStatuses(next, previous) <= 0))
    return { status: previous, changed: false, previous };
  return { status: next, changed: next.milestone !== previous?.milestone, previous };
}

function readStatus({ tracking, readAt, metadata, ...message }: StatusNews): ShipmentStatus | undefined {
  const { shipment, statistics, events } = tracking ?? message;
  const at = tracking ? readAt : metadata?.generatedAt;
  const milestone = shipment?.statusMilestone;
  if (!isFilled(milestone) || !isFilled(at) || readInstant(at) === undefined) return undefined;
  const code = shipment?.statusCode;
  const reachedAt = readReachedAt(milestone, statistics?.timestamps) ?? findReachedAt(milestone, events);
  return {
    milestone,
    ...(isFilled(code) && { code }),
    ...(reachedAt !== undefined && { reachedAt }),
    at,
    source: tracking ? 'results' : 'webhook',
  };
}

/** The field of a milestone is named after it: `outForDeliveryDatetime`. */
function readReachedAt(milestone: string, timestamps: object | null | undefined): string | undefined {
  const field = milestone.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const time: unknown = Reflect.get(Object(timestamps), `${field}Datetime`);
  return isFilled(time) ? time : undefined;
}

function findReachedAt(milestone: string, events: unknown): string | undefined {
  if (!Array.isArray(events)) return undefined;
  const objects = events.filter((event) => typeof event === 'object' && event !== null);
  const first = sortEvents<StatusEvent>(objects).find(
    ({ statusMilestone, occurrenceDatetime }) =>
      statusMilestone === milestone && isFilled(occurrenceDatetime),
  );
  return first?.occurrenceDatetime ?? undefined;
}

/** Positive if `a` replaces `b`. */
function compareStatuses(a: ShipmentStatus, b: ShipmentStatus): number {
  return (
    // A stored time that cannot be read must not keep the status for ever.
    compare(readInstant(a.at) ?? Number.NEGATIVE_INFINITY, readInstant(b.at) ?? Number.NEGATIVE_INFINITY) ||
    compare(a.source === 'webhook', b.source === 'webhook') ||
    compare(getRank(a.milestone), getRank(b.milestone)) ||
    // Any fixed order will do: it makes the result independent of the order of the news.
    compare(listFields(a), listFields(b))
  );
}

function listFields({ milestone, code, reachedAt, at }: ShipmentStatus): string {
  return JSON.stringify([milestone, code, reachedAt, at]);
}

function getRank(milestone: string): number {
  return (STATUS_MILESTONES as readonly string[]).indexOf(milestone);
}

import { isFilled, readTime } from './fields.ts';
import { latestEvent, type OccurrenceDatetime, type OrderableEvent, sortEvents } from './order.ts';

const DAY_MS = 86_400_000;

interface TransitEvent extends OrderableEvent {
  readonly courierCode?: string | null | undefined;
  readonly statusMilestone?: string | null | undefined;
}

/** The parts of results that tell the courier and the time in transit. */
export interface TrackingParts {
  /** Events of the shipment, in any order. */
  readonly events: readonly TransitEvent[];
  /** Tracker of the shipment, with the courier codes that it was created with. */
  readonly tracker?:
    | { readonly courierCode?: string | readonly string[] | null | undefined }
    | null
    | undefined;
  /** Statistics of the service, with the time of the delivery. */
  readonly statistics?:
    | { readonly timestamps?: { readonly deliveredDatetime?: string | null | undefined } | null | undefined }
    | null
    | undefined;
}

/**
 * Tells which courier has the shipment: the courier of the newest event that names one, else the only courier of the tracker.
 *
 * @param tracking - results of a tracker
 * @returns the courier code; undefined if no event names a courier and the tracker has no code or several
 */
export function courierOf({ events, tracker }: TrackingParts): string | undefined {
  const newest = latestEvent(events.filter(({ courierCode }) => isFilled(courierCode)));
  if (newest) return newest.courierCode ?? undefined;
  const [code, ...others] = [tracker?.courierCode].flat().filter(isFilled);
  return others.length === 0 ? code : undefined;
}

/**
 * Counts the days from the first event after the announcement to the delivery.
 *
 * @param tracking - results of a tracker, with the whole history
 * @returns whole days: those that have passed if both times are known instants, else those between the dates as written; undefined
 * if the shipment has not left or was not delivered, or if the times cannot be read
 */
export function daysInTransit({ events, statistics }: TrackingParts): number | undefined {
  const sorted = sortEvents(events);
  const isMoving = ({ statusMilestone }: TransitEvent) =>
    isFilled(statusMilestone) && statusMilestone !== 'pending' && statusMilestone !== 'info_received';
  const start = findTime(sorted.filter(isMoving));
  const delivered = sorted.filter(({ statusMilestone }) => statusMilestone === 'delivered');
  const end = findTime(delivered) ?? readTime(statistics?.timestamps?.deliveredDatetime);
  if (start === undefined || end === undefined) return undefined;
  const isExact = 'epochMs' in start && 'epochMs' in end;
  const ms = isExact ? end.epochMs - start.epochMs : Date.parse(end.date) - Date.parse(start.date);
  return Math.max(0, Math.floor(ms / DAY_MS));
}

function findTime(events: readonly TransitEvent[]): OccurrenceDatetime | undefined {
  for (const { occurrenceDatetime } of events) {
    const time = readTime(occurrenceDatetime);
    if (time !== undefined) return time;
  }
  return undefined;
}

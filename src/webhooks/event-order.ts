import { canonicalJson } from '../common/canonical-json.ts';
import { type OccurrenceDatetime, parseOccurrenceDatetime, startOfDayMs } from './occurrence-datetime.ts';

/** What the order of events is read from: events of results and of webhooks both have it. */
export interface OrderableEvent {
  /** When it happened, as the service sent it. */
  readonly occurrenceDatetime?: string | null | undefined;
  /** Lower is older; breaks ties. */
  readonly order?: number | null | undefined;
  /** Decides last, so that the order does not depend on the input's. */
  readonly eventId?: string | null | undefined;
}

interface Ranked<Event extends OrderableEvent> {
  readonly event: Event;
  readonly occurrence: OccurrenceDatetime | undefined;
  /** Place on one line of time, in milliseconds: instants as they are, local times as if in UTC, dates at their start. */
  readonly position: number;
}

function rank<Event extends OrderableEvent>(event: Event): Ranked<Event> {
  const { occurrenceDatetime } = event;
  // A webhook keeps what came, so the type may be wrong; so may it below.
  const occurrence =
    typeof occurrenceDatetime === 'string' ? parseOccurrenceDatetime(occurrenceDatetime) : undefined;
  return { event, occurrence, position: positionOf(occurrence) };
}

function positionOf(occurrence: OccurrenceDatetime | undefined): number {
  if (occurrence === undefined) return Number.POSITIVE_INFINITY;
  if (occurrence.kind === 'utc' || occurrence.kind === 'offset') return occurrence.epochMs;
  const startMs = startOfDayMs(occurrence.date) ?? 0;
  return occurrence.kind === 'local' ? startMs + occurrence.timeMs : startMs;
}

function compare<Value extends number | string>(a: Value, b: Value): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compareRanks(a: Ranked<OrderableEvent>, b: Ranked<OrderableEvent>): number {
  return (
    compare(a.position, b.position) ||
    compare(orderOf(a) ?? Number.NEGATIVE_INFINITY, orderOf(b) ?? Number.NEGATIVE_INFINITY) ||
    compare(a.event.eventId ?? '', b.event.eventId ?? '') ||
    // Only to make ties of ties independent of the input's order.
    compare(canonicalJson(a.event), canonicalJson(b.event))
  );
}

function orderOf(ranked: Ranked<OrderableEvent>): number | undefined {
  const { order } = ranked.event;
  return typeof order === 'number' ? order : undefined;
}

/**
 * Compares two events as `sortEvents` would order these two; use that for more than two, since days with
 * date-only events can be ordered only as a whole.
 *
 * @param a - an event of results or of a webhook
 * @param b - another event of the same shipment
 * @returns below 0 when `a` is older, above 0 when `b` is, 0 when they are equal
 * @specification service.md 2.3
 */
export function compareEvents(a: OrderableEvent, b: OrderableEvent): number {
  const [first, second] = [rank(a), rank(b)];
  const dateOnly = first.occurrence?.kind === 'date' || second.occurrence?.kind === 'date';
  if (dateOnly && first.occurrence?.date === second.occurrence?.date) {
    const [firstOrder, secondOrder] = [orderOf(first), orderOf(second)];
    if (firstOrder !== undefined && secondOrder !== undefined && firstOrder !== secondOrder) {
      return compare(firstOrder, secondOrder);
    }
  }
  return compareRanks(first, second);
}

/**
 * Orders the events of one shipment, oldest first, whatever order they came in and wherever this runs.
 * Instants rule; a local time counts as if in UTC; `order` breaks ties, and orders the whole of a day on which an event
 * has a date only. Events without a readable time come last.
 *
 * @param events - events of results or of webhooks; not changed
 * @returns a new array
 * @specification service.md 2.3
 * @example
 * sortEvents([
 *   { eventId: 'b', occurrenceDatetime: '2021-03-04', order: 2 },
 *   { eventId: 'a', occurrenceDatetime: '2021-03-04T17:12:57', order: 1 },
 * ]).map(({ eventId }) => eventId); // ['a', 'b']
 */
export function sortEvents<Event extends OrderableEvent>(events: readonly Event[]): Event[] {
  if (events.length < 2) return [...events];
  const ranked = events.map(rank).sort(compareRanks);
  for (const places of placesToReorder(ranked)) orderPlaces(ranked, places);
  return ranked.map(({ event }) => event);
}

/** For each day that has date-only events: the places of its events that have an `order`. */
function placesToReorder(ranked: readonly Ranked<OrderableEvent>[]): Iterable<number[]> {
  const placesOfDay = new Map<string, number[]>();
  for (const { occurrence } of ranked) if (occurrence?.kind === 'date') placesOfDay.set(occurrence.date, []);
  for (const [place, entry] of ranked.entries()) {
    if (orderOf(entry) !== undefined) placesOfDay.get(entry.occurrence?.date ?? '')?.push(place);
  }
  return placesOfDay.values();
}

/** Orders the events at some places by `order`; every other event keeps its place. */
function orderPlaces<Event extends OrderableEvent>(ranked: Ranked<Event>[], places: readonly number[]): void {
  const ordered = places.flatMap((place) => ranked[place] ?? []);
  ordered.sort((a, b) => compare(orderOf(a) ?? 0, orderOf(b) ?? 0) || compareRanks(a, b));
  for (const [index, entry] of ordered.entries()) ranked[places[index] ?? 0] = entry;
}

import { getStartOfDayMs, type OccurrenceDatetime, parseOccurrenceDatetime } from './occurrence-datetime.ts';

/** The fields that order events, of results and of webhooks. */
export interface OrderableEvent {
  /** The time of the event, as the service sent it. */
  readonly occurrenceDatetime?: string | null | undefined;
  /** Lower is older; breaks ties. */
  readonly order?: number | null | undefined;
  /** Breaks the ties that `order` leaves. */
  readonly eventId?: string | null | undefined;
}

/** The sort key of an event. Webhooks keep fields that break the schema, so a field of another type counts as missing. */
interface Rank {
  readonly occurrence: OccurrenceDatetime | undefined;
  /** Milliseconds on one line of time: a local time counts as if in UTC, a date as the start of its day. */
  readonly position: number;
  readonly order: number | undefined;
  readonly eventId: string;
}

interface Ranked<Item> {
  readonly rank: Rank;
  readonly item: Item;
}

function getRank({ occurrenceDatetime, order, eventId }: OrderableEvent): Rank {
  const occurrence =
    typeof occurrenceDatetime === 'string' ? parseOccurrenceDatetime(occurrenceDatetime) : undefined;
  return {
    occurrence,
    position: getPosition(occurrence),
    order: typeof order === 'number' ? order : undefined,
    eventId: typeof eventId === 'string' ? eventId : '',
  };
}

function getPosition(occurrence: OccurrenceDatetime | undefined): number {
  if (occurrence === undefined) return Number.POSITIVE_INFINITY;
  if (occurrence.kind === 'utc' || occurrence.kind === 'offset') return occurrence.epochMs;
  const startMs = getStartOfDayMs(occurrence.date) ?? 0;
  return occurrence.kind === 'local' ? startMs + occurrence.timeMs : startMs;
}

function compare<Value extends number | string>(a: Value, b: Value): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Returns 0 for full ties, so that the stable sort keeps their order. */
function compareRanks(a: Rank, b: Rank): number {
  return (
    compare(a.position, b.position) ||
    compare(a.order ?? Number.NEGATIVE_INFINITY, b.order ?? Number.NEGATIVE_INFINITY) ||
    compare(a.eventId, b.eventId)
  );
}

/**
 * Orders the events of one shipment, oldest first, independently of the machine's time zone. Instants decide, and a local time
 * counts as if in UTC. `order`, then `eventId`, then the place in the input break ties. On a day with date-only events, `order`
 * orders the whole day. Events without a readable time come last.
 *
 * @param events - events of results or of webhooks; not changed
 * @returns a new array
 * @example
 * sortEvents([
 *   { eventId: 'b', occurrenceDatetime: '2021-03-04', order: 2 },
 *   { eventId: 'a', occurrenceDatetime: '2021-03-04T17:12:57', order: 1 },
 * ]).map(({ eventId }) => eventId); // ['a', 'b']
 */
export function sortEvents<Event extends OrderableEvent>(events: readonly Event[]): Event[] {
  return sortByEvent(events, (event) => event);
}

/** Orders items by their events, as `sortEvents` orders events. */
export function sortByEvent<Item>(items: readonly Item[], getEvent: (item: Item) => OrderableEvent): Item[] {
  if (items.length < 2) return [...items];
  const ranked = items.map((item) => ({ rank: getRank(getEvent(item)), item }));
  ranked.sort((a, b) => compareRanks(a.rank, b.rank));
  for (const places of findPlacesToReorder(ranked)) reorderPlaces(ranked, places);
  return ranked.map(({ item }) => item);
}

/** Finds, for each day with date-only events, the places of its events that have an `order`. */
function findPlacesToReorder(ranked: readonly Ranked<unknown>[]): Iterable<number[]> {
  const placesOfDay = new Map<string, number[]>();
  for (const { rank } of ranked) {
    if (rank.occurrence?.kind === 'date') placesOfDay.set(rank.occurrence.date, []);
  }
  if (placesOfDay.size === 0) return [];
  for (const [place, { rank }] of ranked.entries()) {
    const { occurrence, order } = rank;
    if (order !== undefined) placesOfDay.get(occurrence?.date ?? '')?.push(place);
  }
  return placesOfDay.values();
}

/** Orders the events at some places by `order`; the others keep their places. */
function reorderPlaces<Item>(ranked: Ranked<Item>[], places: readonly number[]): void {
  const ordered = places.flatMap((place) => ranked[place] ?? []);
  ordered.sort((a, b) => compare(a.rank.order ?? 0, b.rank.order ?? 0) || compareRanks(a.rank, b.rank));
  for (const [index, entry] of ordered.entries()) ranked[places[index] ?? 0] = entry;
}

/**
 * Finds the event that tells the current state of a shipment.
 *
 * @param events - events of one shipment, of results or of webhooks, in any order
 * @returns the last of `sortEvents` with a readable time; without such an event the last of all; undefined for no events
 */
export function latestEvent<Event extends OrderableEvent>(events: readonly Event[]): Event | undefined {
  const sorted = sortEvents(events);
  return sorted.findLast((event) => getRank(event).occurrence !== undefined) ?? sorted.at(-1);
}

/**
 * Tells whether an event is newer than the one you have. Webhooks come in any order, so an older status can arrive later.
 *
 * @param event - an event that has just arrived
 * @param known - the event of your current status, or its `occurrenceDatetime`, `order` and `eventId`; undefined or null for none
 * @returns false for an older event or the same one, and for one without a readable time if `known` has one
 * @example
 * if (isNewerEvent(event, order.lastEvent)) save({ ...order, status: event.status, lastEvent: event });
 */
export function isNewerEvent(event: OrderableEvent, known: OrderableEvent | null | undefined): boolean {
  if (known === undefined || known === null) return true;
  const [a, b] = [getRank(event), getRank(known)];
  if ((a.occurrence === undefined) !== (b.occurrence === undefined)) return a.occurrence !== undefined;
  const isOneDay = a.occurrence?.date === b.occurrence?.date;
  const hasDateOnly = a.occurrence?.kind === 'date' || b.occurrence?.kind === 'date';
  if (isOneDay && hasDateOnly && a.order !== undefined && b.order !== undefined && a.order !== b.order) {
    return a.order > b.order;
  }
  return compareRanks(a, b) > 0;
}

/** The parts of an `occurrenceDatetime` (docs/service.md 2.5); a local time has no known instant, and a date has no time. */
export type OccurrenceDatetime =
  | {
      readonly kind: 'utc' | 'offset';
      /** The day as written, `2021-03-04`. */
      readonly date: string;
      /** The time of day as written, in milliseconds since midnight. */
      readonly timeMs: number;
      /** Minutes ahead of UTC; 0 for `utc`. */
      readonly offsetMinutes: number;
      /** Milliseconds since the epoch. */
      readonly epochMs: number;
    }
  | { readonly kind: 'local'; readonly date: string; readonly timeMs: number }
  | { readonly kind: 'date'; readonly date: string };

const DATE = String.raw`(\d{4}-\d{2}-\d{2})`;
const TIME = String.raw`(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?`;
const ZONE = String.raw`(?:([Zz])|([+-])(\d{2})(?::?(\d{2}))?)`;
const LOGISTIC_DATE_TIME = new RegExp(`^${DATE}(?:[Tt ]${TIME}${ZONE}?)?$`);

/**
 * Reads an `occurrenceDatetime` without guessing a time zone.
 *
 * @param text - local time, local time with offset, UTC, or a date only
 * @returns the parts of the text; undefined for any other text, and for an impossible day, time or offset
 * @example
 * parseOccurrenceDatetime('2021-03-04T17:12:57+02:00');
 * // { kind: 'offset', date: '2021-03-04', timeMs: 61977000, offsetMinutes: 120, epochMs: 1614870777000 }
 */
export function parseOccurrenceDatetime(text: string): OccurrenceDatetime | undefined {
  const match = LOGISTIC_DATE_TIME.exec(text.trim());
  if (match === null) return undefined;
  const [, date = '', hours, minutes, seconds, fraction, zulu, sign, offsetHours, offsetRest] = match;
  const startMs = getStartOfDayMs(date);
  if (startMs === undefined) return undefined;
  if (hours === undefined) return { kind: 'date', date };
  const timeMs = getTimeOfDayMs(Number(hours), Number(minutes), Number(seconds ?? 0), fraction);
  if (timeMs === undefined) return undefined;
  if (zulu !== undefined) return { kind: 'utc', date, timeMs, offsetMinutes: 0, epochMs: startMs + timeMs };
  if (sign === undefined) return { kind: 'local', date, timeMs };
  if (Number(offsetHours) > 23 || Number(offsetRest ?? 0) > 59) return undefined;
  const distance = Number(offsetHours) * 60 + Number(offsetRest ?? 0);
  // `|| 0` turns the -0 of "-00:00" into 0.
  const offsetMinutes = sign === '-' ? -distance || 0 : distance;
  return { kind: 'offset', date, timeMs, offsetMinutes, epochMs: startMs + timeMs - offsetMinutes * 60_000 };
}

function getStartOfDayMs(date: string): number | undefined {
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  const start = new Date(0);
  // `Date.UTC` would read the years 0 to 99 as 1900 to 1999.
  start.setUTCFullYear(year, month - 1, day);
  const isDay = start.getUTCMonth() === month - 1 && start.getUTCDate() === day;
  return isDay ? start.getTime() : undefined;
}

/** Returns undefined for an impossible time. ISO 8601 allows a leap second, and exactly 24:00:00 as the end of a day. */
function getTimeOfDayMs(hours: number, minutes: number, seconds: number, fraction = ''): number | undefined {
  if (hours > 24 || minutes > 59 || seconds > 60) return undefined;
  if (hours === 24 && (minutes > 0 || seconds > 0 || Number(fraction) > 0)) return undefined;
  return ((hours * 60 + minutes) * 60 + seconds) * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
}

/** The fields by which events are ordered. */
export interface OrderableEvent {
  readonly occurrenceDatetime?: string | null | undefined;
  /** Lower is older; breaks ties (docs/service.md 2.6). */
  readonly order?: number | null | undefined;
  /** Breaks the ties that `order` leaves. */
  readonly eventId?: string | null | undefined;
}

/** The sort key of an event. Webhooks keep fields that break the schema, so a field of another type counts as missing. */
interface Rank {
  readonly occurrence: OccurrenceDatetime | undefined;
  readonly position: number;
  readonly order: number | undefined;
  readonly eventId: string;
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
  // `Date.parse` takes a date without a time as the start of that day in UTC.
  const startMs = Date.parse(occurrence.date);
  return occurrence.kind === 'local' ? startMs + occurrence.timeMs : startMs;
}

function compare<Value extends number | string>(a: Value, b: Value): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compareRanks(a: Rank, b: Rank): number {
  return (
    compare(a.position, b.position) ||
    compare(a.order ?? Number.NEGATIVE_INFINITY, b.order ?? Number.NEGATIVE_INFINITY) ||
    compare(a.eventId, b.eventId)
  );
}

/**
 * Orders the events of one shipment, oldest first, independently of the machine's time zone. The time decides; a local time
 * counts as UTC. Ties are broken by `order`, then `eventId`, then the place in the input. On a day with date-only events, all
 * events of this day that have an `order` are sorted by `order` instead of by time. Events without a readable time come last.
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
  reorderDaysWithoutTimes(ranked);
  return ranked.map(({ item }) => item);
}

function reorderDaysWithoutTimes(ranked: { readonly rank: Rank }[]): void {
  const placesOfDay = new Map<string, number[]>();
  for (const { rank } of ranked) {
    if (rank.occurrence?.kind === 'date') placesOfDay.set(rank.occurrence.date, []);
  }
  for (const [place, { rank }] of ranked.entries()) {
    if (rank.order !== undefined) placesOfDay.get(rank.occurrence?.date ?? '')?.push(place);
  }
  for (const places of placesOfDay.values()) {
    const ordered = places.flatMap((place) => ranked[place] ?? []);
    ordered.sort((a, b) => compare(a.rank.order ?? 0, b.rank.order ?? 0));
    for (const [index, entry] of ordered.entries()) ranked[places[index] ?? 0] = entry;
  }
}

/**
 * Finds the newest event of a shipment. Do not take the status of the shipment from this event: a courier can note a scan with a
 * time after the delivery. This scan is then the newest event, but the shipment stays delivered. The status is
 * `shipment.statusMilestone` (docs/service.md 5.6).
 *
 * @param events - events of one shipment, of results or of webhooks, in any order
 * @returns the last event of `sortEvents` that has a readable time, else the last event; undefined for an empty list
 */
export function latestEvent<Event extends OrderableEvent>(events: readonly Event[]): Event | undefined {
  const sorted = sortEvents(events);
  return sorted.findLast((event) => getRank(event).occurrence !== undefined) ?? sorted.at(-1);
}

/**
 * Tells whether `latestEvent` would choose an event over the one you have. A webhook that arrives later can have older events
 * (docs/service.md 8.3). Like `latestEvent`, this function does not tell the status of a shipment.
 *
 * If you store all events, call `latestEvent` instead. If a day has an event with only a date, `latestEvent` compares all events of
 * this day by `order`. This function gets only two events, so its result can differ.
 *
 * @param event - an event that has just arrived
 * @param known - the last event that you know, if any; its `occurrenceDatetime`, `order` and `eventId` are enough
 * @returns false for an older event, for a copy of the known event, and for an event without a readable time if the known event
 * has a readable time
 * @example
 * if (isNewerEvent(event, order.lastEvent)) save({ ...order, lastEvent: event });
 */
export function isNewerEvent(event: OrderableEvent, known: OrderableEvent | null | undefined): boolean {
  if (known === undefined || known === null) return true;
  // If both events are equal, `latestEvent` returns the last event of the list, `known`. So an equal event is not newer.
  return event !== known && latestEvent([event, known]) === event;
}

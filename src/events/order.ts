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
  /** The instant in milliseconds since the epoch; a local time and the start of a date count as UTC. */
  readonly position: number;
  readonly order: number | undefined;
  readonly eventId: string;
  /** The place in the input. */
  readonly index: number;
}

function getRank(event: OrderableEvent, index: number): Rank {
  const { order, eventId } = event;
  const occurrence = readOccurrence(event);
  return {
    occurrence,
    position: getPosition(occurrence),
    order: typeof order === 'number' ? order : undefined,
    eventId: typeof eventId === 'string' ? eventId : '',
    index,
  };
}

function readOccurrence({ occurrenceDatetime }: OrderableEvent): OccurrenceDatetime | undefined {
  return typeof occurrenceDatetime === 'string' ? parseOccurrenceDatetime(occurrenceDatetime) : undefined;
}

function getPosition(occurrence: OccurrenceDatetime | undefined): number {
  if (occurrence === undefined) return Number.POSITIVE_INFINITY;
  if (occurrence.kind === 'utc' || occurrence.kind === 'offset') return occurrence.epochMs;
  // `Date.parse` takes a date without a time as the start of that day in UTC.
  const startMs = Date.parse(occurrence.date);
  return occurrence.kind === 'local' ? startMs + occurrence.timeMs : startMs;
}

/** Compares two values for `sort`; false comes before true. */
export function compare<Value extends number | string | boolean>(a: Value, b: Value): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compareRanks(a: Rank, b: Rank): number {
  return (
    compare(a.position, b.position) ||
    compare(a.order ?? Number.NEGATIVE_INFINITY, b.order ?? Number.NEGATIVE_INFINITY) ||
    compare(a.eventId, b.eventId) ||
    compare(a.index, b.index)
  );
}

/**
 * Orders the events of one shipment, oldest first, independently of the machine's time zone. Events whose time is UTC or has an
 * offset always come in the order of their times. A local time counts as UTC, and a date without a time as the start of its day.
 * On a day with date-only events, `order` places the dates and the local times of this day among each other, and among the events
 * that can have happened on this day in some time zone. Ties are broken by `order`, then `eventId`, then the place in the input.
 * Events without a readable time come last.
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
  const ranked = items.map((item, index) => ({ rank: getRank(getEvent(item), index), item }));
  ranked.sort((a, b) => compareRanks(a.rank, b.rank));
  const known = ranked.filter(({ rank }) => hasInstant(rank));
  const others = ranked.filter(({ rank }) => !hasInstant(rank));
  const daysByOrder = reorderDaysWithoutTimes(others);
  // Both lists are sorted. Merge them, so that neither changes its order.
  const merged: Item[] = [];
  let next = 0;
  for (const { rank, item } of known) {
    let other = others[next];
    while (other !== undefined && isBefore(other.rank, rank, daysByOrder)) {
      merged.push(other.item);
      next += 1;
      other = others[next];
    }
    merged.push(item);
  }
  return [...merged, ...others.slice(next).map(({ item }) => item)];
}

function hasInstant({ occurrence }: Rank): boolean {
  return occurrence?.kind === 'utc' || occurrence?.kind === 'offset';
}

/** Sorts the events of each day with a date-only event by `order`, within the places of the events that have one. */
function reorderDaysWithoutTimes(ranked: { readonly rank: Rank }[]): ReadonlySet<string> {
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
  return new Set(placesOfDay.keys());
}

/** Tells whether an event without a known instant comes before an event with one. */
function isBefore(other: Rank, known: Rank, daysByOrder: ReadonlySet<string>): boolean {
  const day = other.occurrence?.date ?? '';
  const knownDay = known.occurrence?.date ?? '';
  if (
    daysByOrder.has(day) &&
    canBeOnDay(known.position, day) &&
    other.order !== undefined &&
    known.order !== undefined &&
    other.order !== known.order
  )
    return other.order < known.order;
  if (other.occurrence?.kind === 'date') return day <= knownDay;
  return compareRanks(other, known) < 0;
}

/** A day begins first at an offset of +14:00, and ends last at an offset of -12:00. */
function canBeOnDay(epochMs: number, date: string): boolean {
  const hours = (epochMs - Date.parse(date)) / 3_600_000;
  return hours >= -14 && hours < 24 + 12;
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
  return sorted.findLast((event) => readOccurrence(event) !== undefined) ?? sorted.at(-1);
}

/**
 * Tells whether `latestEvent` would choose an event over the one you have. A webhook that arrives later can have older events
 * (docs/service.md 8.3). Like `latestEvent`, this function does not tell the status of a shipment.
 *
 * If you store all events, call `latestEvent` instead. If a day has an event with only a date, `latestEvent` places it by the `order`
 * of all events around it. This function gets only two events, so its result can differ.
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

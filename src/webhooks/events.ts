// Specification: service.md 2.3, 6; public contract
import { createHash } from 'node:crypto';
import { canonicalJson } from '../common/canonical-json.ts';
import {
  EVENTS_TOPIC,
  type EventsDelivery,
  type ProofOfDelivery,
  type WebhookEvent,
  type WebhookTracker,
} from '../schemas/webhook.ts';

/**
 * The name under which an event is remembered: `topic:trackerId:eventId`, since two trackers may share an event id.
 * A tracker without `trackerId` is named by its `clientTrackerId`, an event without id by the SHA-256 of its content.
 *
 * @param delivery - the delivery that brought the event
 * @param event - one of its events
 * @returns the key, the same for every redelivery; also a good idempotency key for your own writes
 */
export function eventKey(
  delivery: Pick<EventsDelivery, 'metadata' | 'tracker'>,
  event: WebhookEvent,
): string {
  return eventKeys(delivery)(event);
}

/** `eventKey` for the events of one delivery, which share the beginning. */
export function eventKeys(
  delivery: Pick<EventsDelivery, 'metadata' | 'tracker'>,
): (event: WebhookEvent) => string {
  const topic = delivery.metadata?.topic || EVENTS_TOPIC;
  const beginning = `${escaped(topic)}:${trackerName(delivery.tracker)}:`;
  return (event) => beginning + (event.eventId || contentHash(event));
}

/**
 * The name under which a proof of delivery is remembered: the tracker, named as in `eventKey`, and the SHA-256 of the proof.
 * A resend has another `messageId`, and proves nothing new.
 *
 * @param delivery - the proof of delivery
 * @returns the key, the same for every redelivery
 */
export function proofOfDeliveryKey(delivery: ProofOfDelivery): string {
  return `${trackerName(delivery.tracker)}:${contentHash(delivery.data)}`;
}

/** The same for all webhooks of a tracker. No `trackerId` looks like a `clientTrackerId` here: a `%` of it is written as `%25`. */
export function trackerName({ trackerId, clientTrackerId }: WebhookTracker): string {
  // A webhook keeps what came, so an id that is not needed may have any type.
  const isKnown = typeof trackerId === 'string' && (trackerId !== '' || typeof clientTrackerId !== 'string');
  return isKnown ? escaped(trackerId) : `%client=${escaped(clientTrackerId ?? '')}`;
}

/** Ids are opaque; one with a colon must not make two keys one. */
function escaped(part: string): string {
  return part.includes(':') || part.includes('%') ? part.replaceAll('%', '%25').replaceAll(':', '%3A') : part;
}

function contentHash(content: object): string {
  return `sha256-${createHash('sha256').update(canonicalJson(content)).digest('hex')}`;
}

/**
 * What an `occurrenceDatetime` says, and no more: a local time has no instant, and a date no time.
 * - `utc`, `offset`: an instant, in `epochMs`
 * - `local`: a time on a clock of an unknown zone
 * - `date`: a day
 */
export type OccurrenceDatetime =
  | {
      /** An instant. */
      readonly kind: 'utc' | 'offset';
      /** Day as written, `2021-03-04`. */
      readonly date: string;
      /** Time of day as written, in milliseconds since midnight. */
      readonly timeMs: number;
      /** Minutes ahead of UTC; 0 for `utc`. */
      readonly offsetMinutes: number;
      /** Milliseconds since the epoch. */
      readonly epochMs: number;
    }
  | {
      /** A time on a clock of an unknown zone. */
      readonly kind: 'local';
      /** Day as written, `2021-03-04`. */
      readonly date: string;
      /** Time of day as written, in milliseconds since midnight. */
      readonly timeMs: number;
    }
  | {
      /** A day. */
      readonly kind: 'date';
      /** Day as written, `2021-03-04`. */
      readonly date: string;
    };

const DATE = String.raw`(\d{4}-\d{2}-\d{2})`;
const TIME = String.raw`(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?`;
const ZONE = String.raw`(?:([Zz])|([+-])(\d{2})(?::?(\d{2}))?)`;
const LOGISTIC_DATE_TIME = new RegExp(`^${DATE}(?:[Tt ]${TIME}${ZONE}?)?$`);

/** Most events of a shipment are of the same few days. */
let lastDay: { readonly date: string; readonly startMs: number | undefined } = {
  date: '',
  startMs: undefined,
};

/** Milliseconds since the epoch at the start of a day in UTC; undefined for a day that no calendar has. */
function startOfDayMs(date: string): number | undefined {
  if (date === lastDay.date) return lastDay.startMs;
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  const start = new Date(0);
  // Not `Date.UTC`, which takes the years 0 to 99 for 1900 to 1999.
  start.setUTCFullYear(year, month - 1, day);
  const isDay = start.getUTCMonth() === month - 1 && start.getUTCDate() === day;
  lastDay = { date, startMs: isDay ? start.getTime() : undefined };
  return lastDay.startMs;
}

/**
 * Reads an `occurrenceDatetime` without guessing a time zone.
 *
 * @param text - local time, local time with offset, UTC, or a date only
 * @returns what it says; undefined when it is none of these
 * @example
 * parseOccurrenceDatetime('2021-03-04T17:12:57+02:00');
 * // { kind: 'offset', date: '2021-03-04', timeMs: 61977000, offsetMinutes: 120, epochMs: 1614870777000 }
 */
export function parseOccurrenceDatetime(text: string): OccurrenceDatetime | undefined {
  const match = LOGISTIC_DATE_TIME.exec(text.trim());
  if (match === null) return undefined;
  const [, date = '', hours, minutes, seconds, fraction, zulu, sign, offsetHours, offsetRest] = match;
  const startMs = startOfDayMs(date);
  if (startMs === undefined) return undefined;
  if (hours === undefined) return { kind: 'date', date };
  const timeMs = timeOfDayMs(Number(hours), Number(minutes), Number(seconds ?? 0), fraction);
  if (timeMs === undefined) return undefined;
  if (zulu !== undefined) return { kind: 'utc', date, timeMs, offsetMinutes: 0, epochMs: startMs + timeMs };
  if (sign === undefined) return { kind: 'local', date, timeMs };
  const distance = Number(offsetHours) * 60 + Number(offsetRest ?? 0);
  const offsetMinutes = sign === '-' ? -distance || 0 : distance;
  return { kind: 'offset', date, timeMs, offsetMinutes, epochMs: startMs + timeMs - offsetMinutes * 60_000 };
}

/** Allows a leap second and the 24:00:00 that ends a day, as ISO 8601 does. */
function timeOfDayMs(hours: number, minutes: number, seconds: number, fraction = ''): number | undefined {
  if (minutes > 59 || seconds > 60) return undefined;
  const wholeMs = ((hours * 60 + minutes) * 60 + seconds) * 1000;
  if (wholeMs > 86_400_000) return undefined;
  return wholeMs + Number(fraction.slice(0, 3).padEnd(3, '0'));
}

/** What the order of events is read from: events of results and of webhooks both have it. */
export interface OrderableEvent {
  /** When it happened, as the service sent it. */
  readonly occurrenceDatetime?: string | null | undefined;
  /** Lower is older; breaks ties. */
  readonly order?: number | null | undefined;
  /** Decides last, so that the order does not depend on the input's. */
  readonly eventId?: string | null | undefined;
}

interface Ranked<Item> {
  readonly item: Item;
  readonly event: OrderableEvent;
  readonly occurrence: OccurrenceDatetime | undefined;
  /** Place on one line of time, in milliseconds: instants as they are, local times as if in UTC, dates at their start. */
  readonly position: number;
}

function rank<Item>(item: Item, event: OrderableEvent): Ranked<Item> {
  const { occurrenceDatetime } = event;
  // A webhook keeps what came, so the type may be wrong; so may it below.
  const occurrence =
    typeof occurrenceDatetime === 'string' ? parseOccurrenceDatetime(occurrenceDatetime) : undefined;
  return { item, event, occurrence, position: positionOf(occurrence) };
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

function compareRanks(a: Ranked<unknown>, b: Ranked<unknown>): number {
  return (
    compare(a.position, b.position) ||
    compare(orderOf(a) ?? Number.NEGATIVE_INFINITY, orderOf(b) ?? Number.NEGATIVE_INFINITY) ||
    compare(a.event.eventId ?? '', b.event.eventId ?? '') ||
    // Only to make ties of ties independent of the input's order.
    compare(canonicalJson(a.event), canonicalJson(b.event))
  );
}

function orderOf(ranked: Ranked<unknown>): number | undefined {
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
 */
export function compareEvents(a: OrderableEvent, b: OrderableEvent): number {
  const [first, second] = [rank(a, a), rank(b, b)];
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
 * @example
 * sortEvents([
 *   { eventId: 'b', occurrenceDatetime: '2021-03-04', order: 2 },
 *   { eventId: 'a', occurrenceDatetime: '2021-03-04T17:12:57', order: 1 },
 * ]).map(({ eventId }) => eventId); // ['a', 'b']
 */
export function sortEvents<Event extends OrderableEvent>(events: readonly Event[]): Event[] {
  return sortBy(events, (event) => event);
}

/** Orders what belongs to events as `sortEvents` orders these. */
export function sortBy<Item>(items: readonly Item[], eventOf: (item: Item) => OrderableEvent): Item[] {
  if (items.length < 2) return [...items];
  const ranked = items.map((item) => rank(item, eventOf(item))).sort(compareRanks);
  for (const places of placesToReorder(ranked)) orderPlaces(ranked, places);
  return ranked.map(({ item }) => item);
}

/**
 * Finds the event that says where a shipment is now.
 *
 * @param events - events of one shipment, of results or of webhooks, in any order
 * @returns the last of `sortEvents` that has a readable time; without any such event the last of all; undefined for no events
 */
export function latestEvent<Event extends OrderableEvent>(events: readonly Event[]): Event | undefined {
  const sorted = sortEvents(events);
  return sorted.filter(isDated).at(-1) ?? sorted.at(-1);
}

/**
 * Tells whether an event may replace what you have: webhooks come in any order, so an older status can come later.
 *
 * @param event - an event that has just arrived
 * @param known - the event that your status is from, or its `occurrenceDatetime`, `order` and `eventId`; undefined or null for none
 * @returns false for an event that is older or the same, and for one without a readable time where `known` has one
 * @example
 * if (isNewerEvent(event, order.lastEvent)) save({ ...order, status: event.status, lastEvent: event });
 */
export function isNewerEvent(event: OrderableEvent, known: OrderableEvent | null | undefined): boolean {
  if (known === undefined || known === null) return true;
  if (isDated(event) !== isDated(known)) return isDated(event);
  return compareEvents(placeOf(event), placeOf(known)) > 0;
}

function isDated(event: OrderableEvent): boolean {
  return rank(event, event).occurrence !== undefined;
}

/** What is kept of an event may be less than all of it; it is the same event all the same. */
function placeOf({ occurrenceDatetime, order, eventId }: OrderableEvent): OrderableEvent {
  return { occurrenceDatetime, order, eventId };
}

/** For each day that has date-only events: the places of its events that have an `order`. */
function placesToReorder(ranked: readonly Ranked<unknown>[]): Iterable<number[]> {
  const placesOfDay = new Map<string, number[]>();
  for (const { occurrence } of ranked) if (occurrence?.kind === 'date') placesOfDay.set(occurrence.date, []);
  if (placesOfDay.size === 0) return [];
  for (const [place, entry] of ranked.entries()) {
    if (orderOf(entry) !== undefined) placesOfDay.get(entry.occurrence?.date ?? '')?.push(place);
  }
  return placesOfDay.values();
}

/** Orders the events at some places by `order`; every other event keeps its place. */
function orderPlaces<Item>(ranked: Ranked<Item>[], places: readonly number[]): void {
  const ordered = places.flatMap((place) => ranked[place] ?? []);
  ordered.sort((a, b) => compare(orderOf(a) ?? 0, orderOf(b) ?? 0) || compareRanks(a, b));
  for (const [index, entry] of ordered.entries()) ranked[places[index] ?? 0] = entry;
}

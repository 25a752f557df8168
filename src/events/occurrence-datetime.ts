/** An `occurrenceDatetime` as far as it is known: a local time has no instant, and a date has no time. */
export type OccurrenceDatetime =
  | {
      /** An instant. */
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
  | {
      /** A time in an unknown time zone. */
      readonly kind: 'local';
      /** The day as written, `2021-03-04`. */
      readonly date: string;
      /** The time of day as written, in milliseconds since midnight. */
      readonly timeMs: number;
    }
  | {
      /** A day. */
      readonly kind: 'date';
      /** The day as written, `2021-03-04`. */
      readonly date: string;
    };

const DATE = String.raw`(\d{4}-\d{2}-\d{2})`;
const TIME = String.raw`(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?`;
const ZONE = String.raw`(?:([Zz])|([+-])(\d{2})(?::?(\d{2}))?)`;
const LOGISTIC_DATE_TIME = new RegExp(`^${DATE}(?:[Tt ]${TIME}${ZONE}?)?$`);

/**
 * Reads an `occurrenceDatetime` without guessing a time zone.
 *
 * @param text - local time, local time with offset, UTC, or a date only
 * @returns the parts of the text; undefined for any other text
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
  const distance = Number(offsetHours) * 60 + Number(offsetRest ?? 0);
  // `|| 0` turns the -0 of "-00:00" into 0.
  const offsetMinutes = sign === '-' ? -distance || 0 : distance;
  return { kind: 'offset', date, timeMs, offsetMinutes, epochMs: startMs + timeMs - offsetMinutes * 60_000 };
}

/** The last day is cached, because most events of a shipment share a few days. */
let lastDay: { readonly date: string; readonly startMs: number | undefined } = {
  date: '',
  startMs: undefined,
};

/** Computes the start of a day in UTC, in milliseconds since the epoch; undefined for an impossible day. */
export function getStartOfDayMs(date: string): number | undefined {
  if (date === lastDay.date) return lastDay.startMs;
  const [year = 0, month = 0, day = 0] = date.split('-').map(Number);
  const start = new Date(0);
  // Not `Date.UTC`, which takes the years 0 to 99 for 1900 to 1999.
  start.setUTCFullYear(year, month - 1, day);
  const isDay = start.getUTCMonth() === month - 1 && start.getUTCDate() === day;
  lastDay = { date, startMs: isDay ? start.getTime() : undefined };
  return lastDay.startMs;
}

/** Computes the time of day. ISO 8601 allows a leap second, and 24:00:00 as the end of a day. */
function getTimeOfDayMs(hours: number, minutes: number, seconds: number, fraction = ''): number | undefined {
  if (minutes > 59 || seconds > 60) return undefined;
  const wholeMs = ((hours * 60 + minutes) * 60 + seconds) * 1000;
  if (wholeMs > 86_400_000) return undefined;
  return wholeMs + Number(fraction.slice(0, 3).padEnd(3, '0'));
}

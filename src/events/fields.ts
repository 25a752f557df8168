import { type OccurrenceDatetime, parseOccurrenceDatetime } from './order.ts';

// Webhooks and results keep fields that break the schema, so a field can be of any type.

export function isFilled(text: unknown): text is string {
  return typeof text === 'string' && text !== '';
}

export function readTime(text: unknown): OccurrenceDatetime | undefined {
  return isFilled(text) ? parseOccurrenceDatetime(text) : undefined;
}

/** Milliseconds since the epoch; undefined if the text has no time zone. */
export function readInstant(text: unknown): number | undefined {
  const time = readTime(text);
  return time && 'epochMs' in time ? time.epochMs : undefined;
}

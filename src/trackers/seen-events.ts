import { createHash } from 'node:crypto';
import type { TrackingEvent } from '../schemas/event.ts';

/** 128 bits as one-byte characters: even a billion ids share no digest, and an id costs 16 bytes, however long it is. */
const DIGEST_LENGTH = 16;
/** Events remembered for a tracker beyond those of its last answer; those that vanished longest ago are forgotten first. */
const MOST_VANISHED_EVENTS = 1000;

/**
 * The events of one tracker that were yielded, most recently seen first, as one string of digests.
 *
 * Ten thousand trackers wait most of their lives, and a flat string is the smallest thing that can remember.
 */
export type SeenEvents = string;

export const NO_EVENTS_SEEN: SeenEvents = '';

/** What one answer brought. */
export interface Sighting {
  /** The events that were not seen before, each once, in the order of the answer. */
  readonly newEvents: TrackingEvent[];
  readonly seen: SeenEvents;
}

/**
 * Tells new events from known ones (service.md 2.3). An event that vanishes from the answers and comes back is not new.
 *
 * @returns the new events, and what to remember: the whole answer and up to 1,000 events that vanished, 16 bytes each
 */
export function sightEvents(seen: SeenEvents, events: readonly TrackingEvent[]): Sighting {
  const answered = new Map<string, TrackingEvent>();
  for (const event of events) {
    const digest = digestOf(event);
    if (!answered.has(digest)) answered.set(digest, event);
  }
  const current = [...answered.keys()].join('');
  if (current === seen) return { newEvents: [], seen };
  const known = new Set(digestsIn(seen));
  const newEvents = [...answered].flatMap(([digest, event]) => (known.has(digest) ? [] : [event]));
  const vanished = [...known].filter((digest) => !answered.has(digest)).slice(0, MOST_VANISHED_EVENTS);
  return { newEvents, seen: current + vanished.join('') };
}

function digestOf(event: TrackingEvent): string {
  // With `invalidResponse: 'warn'` an event may have no id; then the whole of it is its identity.
  const identity = typeof event.eventId === 'string' ? event.eventId : JSON.stringify(event);
  return createHash('sha256').update(identity).digest('binary').slice(0, DIGEST_LENGTH);
}

function digestsIn(seen: SeenEvents): string[] {
  const count = seen.length / DIGEST_LENGTH;
  return Array.from({ length: count }, (_, index) =>
    seen.slice(index * DIGEST_LENGTH, (index + 1) * DIGEST_LENGTH),
  );
}

import { buildWebhookMessage } from '../../src/testing/index.ts';

/** A webhook usually holds few events of each tracking, because it sends only those since the previous webhook. */
export const EVENTS_PER_TRACKING = 3;

const { kind: _, ...item } = buildWebhookMessage();

/**
 * Builds a webhook's body. No two seeds share a tracker, so their events differ.
 *
 * @param events - events of each tracking, three at most
 */
export function buildBody(trackings: number, firstSeed: number, events = EVENTS_PER_TRACKING): string {
  const items = Array.from({ length: trackings }, (_value, index) => {
    const trackerId = `0f1c2d3e-4b5a-4c6d-8e7f-${(firstSeed + index).toString(16).padStart(12, '0')}`;
    return { ...item, tracker: { ...item.tracker, trackerId }, events: item.events.slice(0, events) };
  });
  return JSON.stringify({ trackings: items });
}

import { EVENTS_TOPIC } from '../common/event-keys.ts';
import { isJsonObject } from '../common/validation.ts';
import { TrackingError, WebhookParseError } from '../errors.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';

/** The parts of a `PollUpdate` that an inbox reads. */
export interface PolledResults {
  readonly tracking: Tracking | undefined;
  readonly tracker: Tracker | undefined;
  readonly newEvents: readonly TrackingEvent[];
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Turns tracking results, or the update of a poll, into the body of a webhook. Returns any other payload as it is. All events of an
 * update's results are handled, not only its `newEvents`, because an event whose callback failed is new in one update only.
 *
 * @param receivedAt - becomes the `generatedAt` of the message, because results have none
 * @throws WebhookParseError when results have no tracker; the `error` of an update whose poll failed
 */
export function toWebhookBody(payload: unknown, receivedAt: Date): unknown {
  if (Array.isArray(payload) && payload.some(isResults)) {
    const message = `Expected the results of one tracker, got a list of ${payload.length}; pass each item by itself`;
    throw new WebhookParseError(message);
  }
  if (!isJsonObject(payload)) return payload;
  if (payload['error'] instanceof TrackingError) throw payload['error'];
  // Recognise an update by `newEvents`: an update that was stored as JSON may lack `tracking`, but never `newEvents`.
  if (Array.isArray(payload['newEvents'])) {
    const { tracking, tracker } = payload;
    return buildBody(isJsonObject(tracking) ? tracking : {}, tracker, receivedAt);
  }
  return isResults(payload) ? buildBody(payload, undefined, receivedAt) : payload;
}

/** Only webhooks have `metadata`, several `trackings`, or ids beside the events (docs/service.md 8.2). */
function isResults(payload: unknown): boolean {
  if (!isJsonObject(payload) || !Array.isArray(payload['events'])) return false;
  return !['metadata', 'trackings', 'trackerId', 'clientTrackerId'].some((name) =>
    Object.hasOwn(payload, name),
  );
}

/** @param polled - the tracker of an update, which may have been read separately */
function buildBody(results: JsonObject, polled: unknown, receivedAt: Date): JsonObject {
  const { events = [] } = results;
  const tracker = results['tracker'] ?? polled;
  // An empty webhook leaves nothing to handle, and `onOther` is not called.
  if (Array.isArray(events) && events.length === 0) return { trackings: [] };
  if (!isJsonObject(tracker)) {
    throw new WebhookParseError(
      'The results have no `tracker`, so their events have no keys; pass results of `trackers.results` or `trackers.track`, ' +
        'because an inbox cannot handle those of `tracking.search`',
    );
  }
  const metadata = { topic: EVENTS_TOPIC, generatedAt: receivedAt.toISOString() };
  return { ...results, tracker, metadata };
}

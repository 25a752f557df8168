import { systemClock } from '../common/clock.ts';
import { EVENTS_TOPIC } from '../common/event-keys.ts';
import { kindOf } from '../common/messages.ts';
import { isJsonObject } from '../common/parsing.ts';
import { TrackingError, WebhookParseError } from '../errors.ts';
import type { TrackingEvent } from '../schemas/event.ts';
import type { Tracker } from '../schemas/tracker.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { type ItemReader, type JsonObject, refusePromise } from './parse.ts';

/** The parts of a `PollUpdate` that an inbox reads. */
export interface PolledResults {
  readonly tracking?: Tracking | undefined;
  readonly tracker?: Tracker | undefined;
  readonly newEvents?: readonly TrackingEvent[] | undefined;
  /** The time at which the service sent the results. */
  readonly readAt?: string | undefined;
  /** The error of a poll that failed. */
  readonly error?: TrackingError | undefined;
}

/**
 * Reads tracking results, updates of polls, or a list of these.
 *
 * @param receivedAt - the `generatedAt` of the messages, because results have none. Default: the `readAt` of an update, else now
 * @throws WebhookParseError when results have no tracker, or are no results; the `error` of an update whose poll failed
 */
export function readResults(reader: ItemReader, results: unknown, receivedAt: Date | undefined): void {
  refusePromise('results', results);
  reader.nameItem = (index) => (Array.isArray(results) ? `\`results[${index}]\`` : 'A tracking result');
  for (const [index, item] of [results].flat().entries()) {
    refusePromise(`results[${index}]`, item);
    const message = buildMessage(item, receivedAt);
    // Without events, there is nothing to handle, and `onOther` is not called.
    if (message !== undefined) reader.read(message, index);
  }
}

function buildMessage(item: unknown, receivedAt: Date | undefined): JsonObject | undefined {
  if (!isJsonObject(item)) return refuseItem(kindOf(item));
  if (item['error'] instanceof TrackingError) throw item['error'];
  const isUpdate = !Object.hasOwn(item, 'events');
  // An update that was stored as JSON may lack `tracking`, but never `newEvents`.
  if (isUpdate && !Object.hasOwn(item, 'tracking') && !Array.isArray(item['newEvents'])) {
    return refuseItem('an object without `events`; pass the body of a webhook to `process`');
  }
  const results = isUpdate ? item['tracking'] : item;
  if (!isJsonObject(results)) return undefined;
  const { events = [] } = results;
  if (Array.isArray(events) && events.length === 0) return undefined;
  // The tracker of an update may have been read separately.
  const tracker = results['tracker'] ?? item['tracker'];
  if (!isJsonObject(tracker)) {
    throw new WebhookParseError(
      'The results have no `tracker`, so their events have no keys; pass results of `trackers.results` or `trackers.track`, ' +
        'because an inbox cannot handle those of `tracking.search`',
    );
  }
  const generatedAt = (receivedAt ?? readTime(item['readAt'])).toISOString();
  return { ...results, tracker, metadata: { topic: EVENTS_TOPIC, generatedAt } };
}

function refuseItem(got: string): never {
  throw new WebhookParseError(
    `Expected \`results\` to be a result of \`trackers.results\` or \`trackers.track\`, or an update of a poll, got ${got}`,
  );
}

/** Returns the current time if there is no valid time. */
function readTime(readAt: unknown): Date {
  const time = typeof readAt === 'string' ? Date.parse(readAt) : Number.NaN;
  return new Date(Number.isNaN(time) ? systemClock.wallNow() : time);
}

/**
 * Refuses a decoded body that is the value for `processResults`, because an update read as a webhook has no events.
 *
 * @throws WebhookParseError that names the other method
 */
export function refuseResults(body: unknown): void {
  if (![body].flat().some((item) => isJsonObject(item) && (isResults(item) || isUpdate(item)))) return;
  throw new WebhookParseError(
    'Expected `body` to be the body of a webhook, got tracking results or an update of a poll; pass them to `processResults`',
  );
}

const hasAny = (value: JsonObject, ...names: readonly string[]) =>
  names.some((name) => Object.hasOwn(value, name));

/** Only results tell whether the service still tracks the parcel, and only webhooks have `metadata` (docs/service.md 8.2). */
function isResults(value: JsonObject): boolean {
  const { tracker, events } = value;
  if (!Array.isArray(events) || hasAny(value, 'metadata', 'trackings')) return false;
  return isJsonObject(tracker) && Object.hasOwn(tracker, 'isTracked');
}

function isUpdate(value: JsonObject): boolean {
  const { tracking, newEvents, error } = value;
  if (hasAny(value, 'metadata', 'trackings', 'events')) return false;
  if (error instanceof TrackingError || (isJsonObject(tracking) && isResults(tracking))) return true;
  return Array.isArray(newEvents) && hasAny(value, 'tracking', 'keys');
}

import { NotFoundError, ResultsNotReadyError } from '../api-errors.ts';
import { ConfigurationError, RequestValidationError, TrackingError } from '../errors.ts';
import type { Caller } from '../http/caller.ts';
import type { Tracking } from '../schemas/tracking.ts';
import { isHopeless } from './hopeless-failure.ts';
import type { PollContext, PollSettings, PollUpdate } from './poll-options.ts';
import { NO_EVENTS_SEEN, type SeenEvents, sightEvents } from './seen-events.ts';

/** What is remembered of one tracker between its polls; as little as possible, for there may be very many. */
export interface PollMemory {
  readonly id: string;
  polls: number;
  errorsInARow: number;
  seen: SeenEvents;
}

export function emptyMemory(id: string): PollMemory {
  return { id, polls: 0, errorsInARow: 0, seen: NO_EVENTS_SEEN };
}

async function fetchTracking(
  caller: Caller,
  memory: PollMemory,
  settings: PollSettings,
  signal: AbortSignal,
): Promise<Tracking | undefined> {
  const { request, totalTimeoutMs } = settings;
  const { searchBy } = request;
  const input = { params: { trackerId: memory.id }, query: { searchBy } };
  try {
    return await caller.call('trackers.results', input, { ...request, totalTimeoutMs, signal });
  } catch (error) {
    if (error instanceof ResultsNotReadyError) return undefined;
    throw error;
  }
}

/** True when the next poll can only fail the same way. A 404 without a code is a gateway's, not the service's word. */
function isFinal(error: unknown): boolean {
  return (
    error instanceof RequestValidationError || (error instanceof NotFoundError && error.code !== undefined)
  );
}

/** True when no poll has succeeded, and this one says why none will: a key that worked once may do so again. */
function neverWorked(error: unknown, { polls, errorsInARow }: PollMemory): boolean {
  const isFirstSeries = polls === errorsInARow + 1;
  return isFirstSeries && (isHopeless(error) || error instanceof ConfigurationError);
}

function judgeError(error: unknown, memory: PollMemory, settings: PollSettings, caller: Caller): void {
  if (isFinal(error) || neverWorked(error, memory)) throw error;
  memory.errorsInARow += 1;
  const reason = error instanceof Error ? error.message : 'unknown failure';
  const { errorsInARow, polls, id } = memory;
  if (errorsInARow >= settings.maxConsecutiveErrors) {
    const times = errorsInARow === 1 ? 'once' : `${errorsInARow} times in a row`;
    throw new TrackingError(`Polling \`${id}\` failed ${times}, at last with: ${reason}`, { cause: error });
  }
  caller.config.logger.warn('A poll failed, the next one follows', { id, poll: polls, errorsInARow, reason });
}

/**
 * Polls one tracker once.
 *
 * @returns the update; undefined when the poll failed and another one may follow
 * @throws what ends the polling of this tracker; the signal's own reason on abort
 */
export async function pollOnce(
  caller: Caller,
  memory: PollMemory,
  settings: PollSettings,
  signal: AbortSignal,
): Promise<PollUpdate | undefined> {
  memory.polls += 1;
  let tracking: Tracking | undefined;
  try {
    tracking = await fetchTracking(caller, memory, settings, signal);
  } catch (error) {
    signal.throwIfAborted();
    judgeError(error, memory, settings, caller);
    return undefined;
  }
  memory.errorsInARow = 0;
  // With `invalidResponse: 'warn'` the events may be anything.
  const events = Array.isArray(tracking?.events) ? tracking.events : [];
  const { newEvents, seen } = sightEvents(memory.seen, events);
  memory.seen = seen;
  return { tracking, newEvents, poll: memory.polls, stopped: tracking?.tracker?.isTracked === false };
}

/** What an interval function is told after a poll, or before the first. */
export function contextOf({ id, polls, errorsInARow }: PollMemory, update?: PollUpdate): PollContext {
  return { id, poll: polls, tracking: update?.tracking, newEvents: update?.newEvents ?? [], errorsInARow };
}

/** True when an update ends the polling of its tracker. */
export function isLast({ tracking, stopped }: PollUpdate, { until }: PollSettings): boolean {
  return stopped || (tracking !== undefined && until(tracking));
}

import { vi } from 'vitest';
import type { PollManyOptions, PollManyUpdate, PollOptions } from '../../src/index.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import type { TrackersToPoll } from '../../src/polling/poll-many.ts';
import type { TrackingEvent } from '../../src/schemas/event.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { makeClient, type StubResponse, toResponse } from '../support/make-client.ts';

/** Results of one tracker, as the service sends them. */
export function results(eventIds: readonly string[], isTracked = true): StubResponse {
  const events: TrackingEvent[] = eventIds.map((eventId) => ({ eventId }));
  return { body: { data: { trackings: [{ tracker: { ...TRACKER, isTracked }, events }] } } };
}

/** Gives every poll results without events. */
export const nothingNew = () => results([]);

/** The record of a tracker. */
export function record(isTracked: boolean): StubResponse {
  return { body: { data: { tracker: { ...TRACKER, isTracked } } } };
}

/** An error in the service's envelope. */
export function failure(status: number, code: string): StubResponse {
  return { status, body: { errors: [{ code, message: 'no' }], data: null } };
}

/** The two forms of a response without results. */
export const NOT_READY = failure(404, 'parcel_not_found');
export const EMPTY: StubResponse = { body: { data: { trackings: [] } } };
export const NOT_FOUND = failure(404, 'tracker_not_found');
export const BROKEN = failure(500, 'processing_error');

/** One request as the service saw it; times are milliseconds since the test began. */
interface SeenRequest {
  readonly kind: 'results' | 'record';
  readonly id: string;
  readonly query: string;
  readonly startedAt: number;
  endedAt: number | undefined;
}

type RespondTo = (poll: number, id: string) => StubResponse | Error;

interface ServiceOptions extends TrackingClientOptions {
  /** Time until the response, for all polls or the n-th of an id. Default 0. */
  readonly latencyMs?: number | ((poll: number, id: string) => number);
  /** Responds to the n-th request for a record. Default: the tracker is tracked. */
  readonly respondWithRecord?: (request: number) => StubResponse;
}

/**
 * A service in virtual time, and a client for it that does not repeat failed requests.
 *
 * @param respondTo - builds the response to the n-th poll of an id, from 1
 */
export function polledService(respondTo: RespondTo, options: ServiceOptions = {}) {
  const { latencyMs = 0, respondWithRecord = () => record(true), ...clientOptions } = options;
  vi.useFakeTimers();
  const beganAt = performance.now();
  const requests: SeenRequest[] = [];
  const polls: SeenRequest[] = [];
  const [info, warn] = [vi.fn(), vi.fn()];
  const { client } = makeClient(
    async ({ url, signal }) => {
      const { pathname, search } = new URL(url);
      const [, encodedId = '', rest] = /\/trackers\/([^/]+)(\/results)?$/.exec(pathname) ?? [];
      const kind = rest === undefined ? 'record' : 'results';
      const id = decodeURIComponent(encodedId);
      const startedAt = performance.now() - beganAt;
      const seen: SeenRequest = { kind, id, query: search, startedAt, endedAt: undefined };
      requests.push(seen);
      if (kind === 'record') return toResponse(respondWithRecord(requests.length - polls.length));
      polls.push(seen);
      const poll = polls.filter((other) => other.id === id).length;
      await pause(typeof latencyMs === 'number' ? latencyMs : latencyMs(poll, id), signal);
      seen.endedAt = performance.now() - beganAt;
      const response = respondTo(poll, id);
      if (response instanceof Error) throw response;
      return toResponse(response);
    },
    { retry: false, logger: { debug() {}, info, warn, error() {} }, logLevel: 'info', ...clientOptions },
  );
  return {
    client,
    /** Every request, those for records included. */
    requests,
    polls,
    info,
    warn,
    /** Lists when each poll of an id, or of all ids, reached the service. */
    listStarts: (id?: string) =>
      polls.filter((poll) => id === undefined || poll.id === id).map(({ startedAt }) => startedAt),
  };
}

/** Reads a poll of `tracker-1` every second in the background. */
export function startPoll(
  respondTo: RespondTo,
  options: PollOptions = {},
  serviceOptions: ServiceOptions = {},
) {
  const service = polledService(respondTo, serviceOptions);
  const stream = service.client.trackers.poll('tracker-1', { intervalMs: 1000, ...options });
  return { ...service, stream, reading: read(stream) };
}

/** Reads a poll of some trackers every second in the background. */
export function startPollMany(
  respondTo: RespondTo,
  ids: TrackersToPoll,
  options: PollManyOptions = {},
  serviceOptions: ServiceOptions = {},
) {
  const service = polledService(respondTo, serviceOptions);
  const stream = service.client.trackers.pollMany(ids, { intervalMs: 1000, ...options });
  return { ...service, stream, reading: read(stream) };
}

/** A limiter that grants every call, and the priority of each. */
export function makePriorityLimiter() {
  const priorities: unknown[] = [];
  const limiter = {
    spansProcesses: false,
    maxQueue: Number.POSITIVE_INFINITY,
    acquire: async ({ priority }: { priority: unknown }) => {
      priorities.push(priority);
      return { tokensLeft: 1, send() {}, noteResponse() {}, settlePause() {}, cancel() {} };
    },
    snapshot: () => ({ limit: 1, inUse: 0, queued: 0, pausedUntil: null }),
  };
  return { priorities, limiter };
}

/** A wait that clears its timer when the request is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** The items that a reader in the background has got so far. */
export interface Reading<T> {
  readonly items: T[];
  /** The end of the stream; undefined before the end. */
  end: { readonly error?: unknown } | undefined;
}

/** Reads a stream in the background, and pauses for `pauseMs` after each item. */
export function read<T>(stream: AsyncIterable<T>, pauseMs: number | ((item: T) => number) = 0): Reading<T> {
  const reading: Reading<T> = { items: [], end: undefined };
  const run = async () => {
    for await (const item of stream) {
      reading.items.push(item);
      const ms = typeof pauseMs === 'number' ? pauseMs : pauseMs(item);
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    }
  };
  run().then(
    () => {
      reading.end = {};
    },
    (error: unknown) => {
      reading.end = { error };
    },
  );
  return reading;
}

/** Lets virtual time pass. */
export async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

/** Makes the ids of a number of trackers. */
export function makeIds(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `tracker-${index}`);
}

/** Lists the ids of updates. */
export function listIds(updates: readonly PollManyUpdate[]): string[] {
  return updates.map(({ id }) => id);
}

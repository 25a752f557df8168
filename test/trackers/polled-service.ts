import { onTestFinished, vi } from 'vitest';
import type { PollManyUpdate } from '../../src/index.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import type { TrackingEvent } from '../../src/schemas/event.ts';
import { TRACKER } from '../support/calls.ts';
import { type Answer, makeClient, toResponse } from '../support/make-client.ts';

/** Results of one tracker, as the service sends them. */
export function results(eventIds: readonly string[], isTracked = true): Answer {
  const events: TrackingEvent[] = eventIds.map((eventId) => ({ eventId }));
  return { body: { data: { trackings: [{ tracker: { ...TRACKER, isTracked }, events }] } } };
}

/** The record of a tracker. */
export function record(isTracked: boolean): Answer {
  return { body: { data: { tracker: { ...TRACKER, isTracked } } } };
}

/** The service's answer when it has no data yet, in one of its two forms. */
export const NOT_READY: Answer = { status: 404, body: failure('parcel_not_found') };
export const EMPTY: Answer = { body: { data: { trackings: [] } } };
export const NOT_FOUND: Answer = { status: 404, body: failure('tracker_not_found') };
export const BROKEN: Answer = { status: 500, body: failure('processing_error') };

function failure(code: string) {
  return { errors: [{ code, message: 'no' }], data: null };
}

/** One poll as the service saw it; times are milliseconds since the test began. */
export interface SeenPoll {
  readonly id: string;
  readonly query: string;
  readonly startedAt: number;
  endedAt: number | undefined;
}

/**
 * A service in virtual time, and a client for it that does not repeat failed requests.
 *
 * @param answerTo - what the n-th poll of an id gets, from 1
 * @param latencyMs - time until an answer, for all polls or the n-th of an id
 */
export function polledService(
  answerTo: (poll: number, id: string) => Answer | Error,
  latencyMs: number | ((poll: number, id: string) => number) = 0,
  options: TrackingClientOptions = {},
) {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
  const beganAt = performance.now();
  const polls: SeenPoll[] = [];
  const counts = new Map<string, number>();
  const { client } = makeClient(
    async ({ url, signal }) => {
      const { pathname, search } = new URL(url);
      const id = decodeURIComponent(pathname.split('/').at(-2) ?? '');
      const poll = (counts.get(id) ?? 0) + 1;
      counts.set(id, poll);
      const seen: SeenPoll = {
        id,
        query: search,
        startedAt: performance.now() - beganAt,
        endedAt: undefined,
      };
      polls.push(seen);
      await pause(typeof latencyMs === 'number' ? latencyMs : latencyMs(poll, id), signal);
      seen.endedAt = performance.now() - beganAt;
      const answer = answerTo(poll, id);
      if (answer instanceof Error) throw answer;
      return toResponse(answer);
    },
    { retry: false, ...options },
  );
  return {
    client,
    polls,
    /** When each poll of an id, or of all, reached the service. */
    startsOf: (id?: string) =>
      polls.filter((poll) => id === undefined || poll.id === id).map(({ startedAt }) => startedAt),
    now: () => performance.now() - beganAt,
  };
}

/** A wait that leaves no timer behind when the request is given up. */
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

/** What a reader in the background has got so far. */
export interface Reading<T> {
  readonly items: T[];
  /** How it ended; undefined while it reads. */
  end: { readonly error?: unknown } | undefined;
}

/** Reads a stream in the background; `pauseMs` is what the reader takes for each item. */
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

/** Ids of as many trackers. */
export function idsOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `tracker-${index}`);
}

/** Whose updates they are. */
export function idsIn(updates: readonly PollManyUpdate[]): string[] {
  return updates.map(({ id }) => id);
}

import type { ApiErrorItem } from '../schemas/api-error.ts';
import type { Tracker, TrackerInput } from '../schemas/tracker.ts';

/**
 * What became of one input.
 * - `created`: a new tracker
 * - `existing`: the tracker that matches the same payload
 * - `error`: refused, or never sent because the run ended before
 * - `invalid`: broke a rule for creation requests and was never sent
 * - `unknown`: sent, and nothing tells whether it was carried out; sending it again is safe, for what exists is reused
 *
 * @specification service.md 2.1, 2.4
 */
export type BulkStatus = 'created' | 'existing' | 'error' | 'invalid' | 'unknown';

/** What became of one input of `trackers.createMany`. */
export interface BulkOutcome {
  /** Place of the input among all inputs, from 0. */
  readonly index: number;
  /** The input as it was given. */
  readonly input: TrackerInput;
  /** What became of it. */
  readonly status: BulkStatus;
  /** The tracker, where the service sent one. */
  readonly tracker?: Tracker;
  /**
   * Why there is no tracker. The codes are the service's; where it said nothing they are `http_<status>`,
   * `connection_failed`, `timeout`, `invalid_response` (a success that can't be read), `not_in_response` (the answer
   * does not mention the input), `queue_full`, `aborted` or `request_failed`.
   */
  readonly errors?: readonly ApiErrorItem[];
}

/** How many inputs came out how. */
export interface BulkSummary {
  /** Inputs whose outcome is known, read by you or not. */
  readonly total: number;
  /** New trackers. */
  readonly created: number;
  /** Trackers that matched the same payload. */
  readonly existing: number;
  /** Inputs that were refused, or not sent before the run ended. */
  readonly error: number;
  /** Inputs that broke a rule and were not sent. */
  readonly invalid: number;
  /** Inputs of which nothing tells what became of them. */
  readonly unknown: number;
}

export const EMPTY_SUMMARY: BulkSummary = {
  total: 0,
  created: 0,
  existing: 0,
  error: 0,
  invalid: 0,
  unknown: 0,
};

/** A summary with more outcomes counted in. */
export function addOutcomes(summary: BulkSummary, outcomes: readonly BulkOutcome[]): BulkSummary {
  const counts = { ...summary, total: summary.total + outcomes.length };
  for (const { status } of outcomes) counts[status] += 1;
  return counts;
}

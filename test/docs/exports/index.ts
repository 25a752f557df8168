/**
 * Exports whose comments say too little, each in one way.
 *
 * @module exports
 */

import { z } from 'zod';
import type { EndpointName } from '../../../src/endpoints.ts';

export function withoutComment(): void {}

/**
 * Adds two numbers.
 *
 * @param one - a number
 * @returns the sum
 */
export function withoutParam(one: number, other: number): number {
  return one + other;
}

/** Gives a number. */
export function withoutReturns(): number {
  return 1;
}

/** no sentence */
export function withoutSentence(): void {}

/**
 * Checks its options.
 *
 * @param options - see `WaitOptions`
 */
export function withoutThrows(options: WaitOptions): void {
  void options;
}

/**
 * Checks its options.
 *
 * @param options - see `WaitOptions`
 * @throws when something is wrong
 */
export function withoutClass(options: WaitOptions): void {
  void options;
}

/**
 * Is well described.
 *
 * @param options - see `WaitOptions`
 * @returns a parcel
 * @throws TypeError when an option makes no sense
 */
export function complete(options: WaitOptions): Parcel {
  return { weight: options.withDefault ?? 1 };
}

/** Options of `complete`. */
export interface WaitOptions {
  /** How long to wait. Default 5. */
  readonly withoutUnitMs?: number;
  /** How many. */
  readonly withoutDefault?: number;
  /** How many. Default 1. */
  readonly withDefault?: number;
}

/**
 * The schema of `Parcel`.
 *
 * @specification service.md 2.9
 */
export const parcelSchema = z.object({
  /** In grams. */
  weight: z.number(),
});
/**
 * A parcel.
 *
 * @specification service.md 2.3; public contract
 */
export type Parcel = z.output<typeof parcelSchema>;

/** Trackers. */
export class TrackersResource {
  /** Which endpoint it asks. */
  readonly endpoint: EndpointName = 'trackers.get';

  /**
   * Gets a tracker.
   *
   * @param id - which one
   * @returns its name
   * @specification service.md 3
   */
  get(id: string): string {
    return id;
  }
}

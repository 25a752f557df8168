/**
 * Exports whose comments say too little, each in one way, and some whose comments say enough.
 *
 * @module exports
 */

export function withoutComment(): void {}

/**
 * Adds two numbers.
 *
 * @param a - a number
 * @returns the sum
 */
export function withoutParam(a: number, b: number): number {
  return a + b;
}

/** Gives a number. */
export function withoutReturns(): number {
  return 1;
}

/** no sentence */
export function withoutSentence(): void {}

/** A parcel. */
export interface Parcel {
  readonly withoutText: number;
  /** How long to wait. */
  readonly withoutUnitMs: number;
  /** Named in design.md, section 2. */
  readonly withFile: number;
  /** How long to wait, in milliseconds. */
  readonly withUnitMs: number;
}

/** Trackers. */
export class Trackers {
  withoutMethodComment(): void {}

  [Symbol.iterator](): Iterator<number> {
    return [1].values();
  }
}

/**
 * Is well described.
 *
 * @param parcel - which one
 * @returns its number
 */
export function complete(parcel: Parcel): number {
  return parcel.withUnitMs;
}

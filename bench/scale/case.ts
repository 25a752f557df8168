/** One promise and what was found. */
export interface Figure {
  readonly name: string;
  /** What must be reached, as words; undefined where the figure only informs. */
  readonly target?: string;
  readonly isReached?: boolean;
  /** What was found, as words. */
  readonly found: string;
  /** The same as numbers, for programs. */
  readonly values: Readonly<Record<string, number>>;
}

/** Random numbers from 0 to 1 that are the same in every run. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The value that a share of all values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

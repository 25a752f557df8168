/** Returns the middle value, or the lower of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length / 2) - 1)] ?? Number.NaN;
}

/** Returns the median of a named value in all samples, or of its ratio to another value of the same sample. */
export function findMedian(
  samples: readonly ReadonlyMap<string, number>[],
  name: string,
  against?: string,
): number {
  const read = (sample: ReadonlyMap<string, number>, key: string) => sample.get(key) ?? Number.NaN;
  return median(
    samples.map((sample) => read(sample, name) / (against === undefined ? 1 : read(sample, against))),
  );
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Rounds a count and separates its thousands. */
export function formatCount(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

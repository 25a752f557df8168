/** The middle value; with an even number of values the lower of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}

export function max(values: readonly number[]): number {
  return Math.max(...values);
}

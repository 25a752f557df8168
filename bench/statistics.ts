/** Returns the lower of the two middle values if the number of values is even. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value that this share of all values does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function max(values: readonly number[]): number {
  return Math.max(...values);
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

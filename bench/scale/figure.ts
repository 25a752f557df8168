/** One promise and what was measured. */
export interface Figure {
  readonly name: string;
  /** What must be reached, in words; none where the figure only informs. */
  readonly target?: string;
  readonly isReached?: boolean;
  /** What was measured, in words. */
  readonly found: string;
}

export function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

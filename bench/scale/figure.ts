export interface Figure {
  readonly name: string;
  /** States the target in words; it is absent if the figure only informs. */
  readonly target?: string;
  readonly isReached?: boolean;
  /** States the measurement in words. */
  readonly found: string;
}

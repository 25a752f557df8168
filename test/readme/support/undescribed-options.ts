/** Options of nothing: what the README's program refuses. */
export interface UndescribedOptions {
  /** How often. Default 3. */
  readonly times?: number | undefined;
  /** How long, in milliseconds. */
  readonly lengthMs?: number | undefined;
}

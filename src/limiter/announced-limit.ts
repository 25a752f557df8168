/**
 * The largest limit that an answer can announce. A larger number is what a gateway allows in an hour or a day; taken for
 * a limit per second it would let everything that waits leave at once.
 */
export const LARGEST_ANNOUNCED_LIMIT = 1_000;

/**
 * Whether an announced number is a limit per second.
 *
 * @param configured - the limit that the caller knows; where that is larger, as large a one may be announced
 */
export function isBelievable(announced: number | undefined, configured: number): announced is number {
  if (announced === undefined || !Number.isSafeInteger(announced)) return false;
  return announced >= 1 && announced <= Math.max(LARGEST_ANNOUNCED_LIMIT, configured);
}

/** The attempt of several items as one; not `Math.max(...)`, for a delivery may have more events than a call takes arguments. */
export function highest(attempts: Iterable<number>): number {
  let most = 1;
  for (const attempt of attempts) most = Math.max(most, attempt);
  return most;
}

/**
 * Calls a function of the caller's whose failure must not break ours.
 *
 * @param onFailure - called when it throws, or when the promise it returns rejects
 */
export function callGuarded(callback: () => unknown, onFailure: () => void): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(onFailure);
  } catch {
    onFailure();
  }
}

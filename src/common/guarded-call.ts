/** Calls a function of the caller's; neither what it throws nor a promise of it that rejects may break ours. */
export function callGuarded(callback: () => unknown, onFailure: () => void = () => {}): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(onFailure);
  } catch {
    onFailure();
  }
}

import { isPromise } from './foreign.ts';

/** Calls a callback of the user. If it throws or its promise rejects, `onFailure` gets the error, and the caller does not. */
export function callGuarded(callback: () => unknown, onFailure: (error: unknown) => void = () => {}): void {
  try {
    const returned = callback();
    if (isPromise(returned)) returned.catch(onFailure);
  } catch (error) {
    onFailure(error);
  }
}

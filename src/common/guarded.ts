import { systemClock, unref } from './clock.ts';
import { isPromise } from './foreign.ts';

/** Rejects with the error of `buildError` when a call takes longer than `limitMs`. The call itself goes on. */
export async function withTimeLimit<Result>(
  call: () => Promise<Result>,
  limitMs: number,
  buildError: (call: Promise<Result>) => Error,
): Promise<Result> {
  const result = call();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = systemClock.setTimeout(() => reject(buildError(result)), limitMs);
    // This timer alone must not keep the process alive.
    unref(timer);
  });
  try {
    return await Promise.race([result, limit]);
  } finally {
    systemClock.clearTimeout(timer);
  }
}

/** Calls a callback of the user. If it throws or its promise rejects, `onFailure` gets the error, and the caller does not. */
export function callGuarded(callback: () => unknown, onFailure: (error: unknown) => void = () => {}): void {
  try {
    const returned = callback();
    if (isPromise(returned)) returned.catch(onFailure);
  } catch (error) {
    onFailure(error);
  }
}

/** Reads an environment variable. Where Deno denies access to it, it counts as not set. */
export function readEnvironment(name: string): string | undefined {
  try {
    return globalThis.process?.env?.[name];
  } catch {
    return undefined;
  }
}

import { systemClock, unref } from './clock.ts';

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

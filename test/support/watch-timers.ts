interface StartedTimer {
  readonly delayMs: number | undefined;
  readonly timer: NodeJS.Timeout;
}

/**
 * Records the timers that start while `work` runs. A plain wrapper: a spy over fake timers outlives them when test files share
 * a process.
 */
export async function watchTimers(work: (started: readonly StartedTimer[]) => Promise<void>): Promise<void> {
  const original = globalThis.setTimeout;
  const started: StartedTimer[] = [];
  const watched = (callback: () => void, delayMs?: number) => {
    const timer = original(callback, delayMs);
    started.push({ delayMs, timer });
    return timer;
  };
  globalThis.setTimeout = Object.assign(watched, original);
  try {
    await work(started);
  } finally {
    globalThis.setTimeout = original;
  }
}

import { afterEach, vi } from 'vitest';

// Files share one process, so a test must leave no stub, fake timer or mock to the next one. Stubs go first: a test may have
// stubbed a faked timer, which would otherwise come back after the real ones.
afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

import { afterEach, vi } from 'vitest';

// Suites share one process, so a test must not leave fake timers or mocks to the next one.
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

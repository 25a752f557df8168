import { QueueFullError, TimeoutError } from '../errors.ts';

/** As many calls wait as may. */
export function queueFullError(endpoint: string, maxQueue: number): QueueFullError {
  return new QueueFullError(
    `Expected at most ${maxQueue} calls of \`${endpoint}\` to wait for the rate limit, got one more`,
  );
}

/** A call waited as long as it may. */
export function queueTimeoutError(endpoint: string, timeoutMs: number): TimeoutError {
  const message = `Expected a free slot for \`${endpoint}\` within ${timeoutMs} ms, got none`;
  return new TimeoutError(message, { phase: 'queue', timeoutMs });
}

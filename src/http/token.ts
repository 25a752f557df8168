import type { CallOptions, Config } from '../config.ts';
import { RateLimitError, TimeoutError, type TrackingError } from '../errors.ts';
import type { Ticket } from '../limiter/limiter.ts';
import { LongPauseError } from '../limiter/long-pause-error.ts';
import type { CallDeadline } from './deadline.ts';
import type { PreparedCall } from './pipeline.ts';
import { rateLimitDelayMs } from './read-answer.ts';
import { parseRateLimit } from './response-headers.ts';

/** Tells the limiter what the headers of an answer told. */
export function settle(ticket: Ticket | undefined, response: Response): void {
  ticket?.settle({
    status: response.status,
    retryAfterMs: response.status === 429 ? rateLimitDelayMs(response.headers) : undefined,
    announcedLimit: parseRateLimit(response.headers).limit,
  });
}

/** A ticket whose failures cost the caller nothing: a request was or will be answered, whatever the limiter makes of it. */
function guarded(ticket: Ticket, config: Config): Ticket {
  const guard = (step: () => void) => {
    try {
      step();
    } catch {
      config.logger.warn('The limiter failed to take note of a request; the call goes on');
    }
  };
  return {
    tokensLeft: ticket.tokensLeft,
    send: () => guard(() => ticket.send()),
    settle: (settlement) => guard(() => ticket.settle(settlement)),
    cancel: () => guard(() => ticket.cancel()),
  };
}

/** A call that would wait behind a pause longer than `maxRetryAfterMs` rejects as the call that caused the pause did. */
function rateLimitErrorOf<T>(call: PreparedCall<T>, retryAfterMs: number, attempts: number): RateLimitError {
  const seconds = Math.ceil(retryAfterMs / 1000);
  return new RateLimitError(
    `${call.method} ${call.path} is paused by the service for ${seconds} s more, longer than \`retry.maxRetryAfterMs\` allows`,
    {
      status: 429,
      errors: [],
      requestId: undefined,
      method: call.method,
      path: call.path,
      headers: new Headers(),
      body: undefined,
      attempts,
      retryAfterMs,
    },
  );
}

/** Waits for a token, at most as long as the call has time. */
export async function waitForToken<T>(
  config: Config,
  call: PreparedCall<T>,
  options: CallOptions,
  waiting: {
    readonly deadline: CallDeadline;
    readonly lastFailure: TrackingError | undefined;
    readonly attempts: number;
  },
): Promise<Ticket | undefined> {
  const { deadline, lastFailure, attempts } = waiting;
  const { limiter } = config;
  if (limiter === undefined) return undefined;
  const bucket = { baseUrl: config.baseUrl, account: config.account, endpoint: call.endpoint };
  try {
    const ticket = await limiter.acquire({
      bucket,
      limit: call.limitPerSecond,
      maxLimit: call.maxLimitPerSecond,
      priority: options.priority,
      signal: options.signal,
      maxWaitMs: deadline.remainingMs,
      maxPauseMs: options.retry.maxRetryAfterMs,
    });
    if (deadline.remainingMs !== 0) return guarded(ticket, config);
    ticket.cancel();
    throw deadline.error('queue', lastFailure);
  } catch (error) {
    if (error instanceof LongPauseError) throw rateLimitErrorOf(call, error.pausedForMs, attempts);
    // The limiter knows what was left of the call's time, the error names what the caller allowed.
    const isTimeUp = error instanceof TimeoutError && (deadline.remainingMs ?? Number.POSITIVE_INFINITY) < 1;
    throw isTimeUp ? deadline.error('queue', lastFailure) : error;
  }
}

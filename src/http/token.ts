import { RateLimitError } from '../api-errors.ts';
import { onAbort } from '../common/timing.ts';
import type { CallOptions } from '../config/call-options.ts';
import type { Config } from '../config/config.ts';
import { QueueFullError, TimeoutError, type TrackingError } from '../errors.ts';
import type { Ticket } from '../limiter/limiter.ts';
import { LongPauseError } from '../limiter/long-pause-error.ts';
import { TokenBucketLimiter } from '../limiter/token-bucket.ts';
import type { CallDeadline } from './deadline.ts';
import type { PreparedCall } from './pipeline.ts';
import { rateLimitDelayMs } from './read-answer.ts';
import { announcedLimit } from './response-headers.ts';

/** Tells the limiter what the headers of an answer told. */
export function settle(ticket: Ticket | undefined, response: Response): void {
  ticket?.settle({
    status: response.status,
    retryAfterMs: response.status === 429 ? rateLimitDelayMs(response.headers) : undefined,
    announcedLimit: announcedLimit(response.headers),
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

/** What a call knows that waits for a token. */
interface Waiting {
  readonly deadline: CallDeadline;
  readonly lastFailure: TrackingError | undefined;
  readonly attempts: number;
}

/** Rejects on abort and when the call's time is up, also while a limiter of the caller's own does nothing about it. */
function unlessOver(
  acquiring: Promise<Ticket>,
  signal: AbortSignal | undefined,
  { deadline, lastFailure }: Waiting,
): Promise<Ticket> {
  const { remainingMs } = deadline;
  if (signal === undefined && remainingMs === undefined) return acquiring;
  return new Promise((resolve, reject) => {
    let takeBack = () => {};
    let timer: ReturnType<typeof setTimeout> | undefined;
    const finish = () => {
      clearTimeout(timer);
      takeBack();
    };
    const giveUp = (reason: unknown) => {
      finish();
      reject(reason);
      // A ticket that comes too late is nobody's.
      acquiring.then((ticket) => ticket.cancel()).catch(() => {});
    };
    if (remainingMs !== undefined) {
      timer = setTimeout(() => giveUp(deadline.error('queue', lastFailure)), Math.ceil(remainingMs));
    }
    if (signal !== undefined) takeBack = onAbort(signal, () => giveUp(signal.reason));
    acquiring.then(resolve, reject).finally(finish);
  });
}

/** Waits for a token, at most as long as the call has time. */
export async function waitForToken<T>(
  config: Config,
  call: PreparedCall<T>,
  options: CallOptions,
  waiting: Waiting,
): Promise<Ticket | undefined> {
  const { deadline, lastFailure, attempts } = waiting;
  const { limiter } = config;
  if (limiter === undefined) return undefined;
  const bucket = { baseUrl: config.baseUrl, account: config.account, endpoint: call.endpoint };
  try {
    const acquiring = limiter.acquire({
      bucket,
      limit: call.limitPerSecond,
      maxLimit: call.maxLimitPerSecond,
      priority: options.priority,
      signal: options.signal,
      maxWaitMs: deadline.remainingMs,
      maxPauseMs: options.retry.maxRetryAfterMs,
    });
    // The built-in limiter gives up by itself, with one timer for all who wait.
    const isTrusted = limiter instanceof TokenBucketLimiter;
    const ticket = isTrusted ? await acquiring : await unlessOver(acquiring, options.signal, waiting);
    if (deadline.remainingMs !== 0) return guarded(ticket, config);
    ticket.cancel();
    throw deadline.error('queue', lastFailure);
  } catch (error) {
    // Something was sent, so its failure says more than a queue that is full by now.
    if (error instanceof QueueFullError && lastFailure !== undefined) throw lastFailure;
    if (error instanceof LongPauseError) throw rateLimitErrorOf(call, error.pausedForMs, attempts);
    // The limiter knows what was left of the call's time, the error names what the caller allowed.
    const isTimeUp = error instanceof TimeoutError && (deadline.remainingMs ?? Number.POSITIVE_INFINITY) < 1;
    throw isTimeUp ? deadline.error('queue', lastFailure) : error;
  }
}

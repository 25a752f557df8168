import * as z from 'zod';
import { checkIsObject, checkOptions, type ErrorContext } from '../common/check-options.ts';
import { systemClock } from '../common/clock.ts';
import { functionOption, type OptionShape } from '../common/option-schemas.ts';
import type { ValidationIssue } from '../common/parsing.ts';
import type { EndpointName } from '../endpoints.ts';
import type { TrackingError } from '../errors.ts';
import { callOrWarn, type LogAdapter } from './logger.ts';

/** The facts about a call that every hook gets. */
export interface CallInfo {
  /** Identifies the call in all its hooks and log lines (a UUID). */
  readonly callId: string;
  /** The endpoint; `request` for a call of `client.request` whose method and path are not in the endpoint table. */
  readonly endpoint: EndpointName | 'request';
  /** HTTP method. */
  readonly method: string;
  /** Path template, e.g. `/trackers/{trackerId}`. For a request outside the endpoint table, its path. Never with a query. */
  readonly path: string;
  /** The client's base URL, without a slash at its end. */
  readonly baseUrl: string;
}

/** The facts about one attempt of a call. */
export interface AttemptInfo extends CallInfo {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** Time that this attempt waited in the limiter's queue, in milliseconds. */
  readonly queuedMs: number;
}

export interface RequestInfo extends AttemptInfo {
  /** Tokens left in the endpoint's bucket; undefined without a limiter. */
  readonly tokensLeft: number | undefined;
}

export interface ResponseInfo extends RequestInfo {
  /** HTTP status. */
  readonly status: number;
  /** Time from sending to the end of the body, in milliseconds. */
  readonly durationMs: number;
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
}

export interface ErrorInfo extends RequestInfo {
  /** ConnectionError, TimeoutError, or your signal's reason. */
  readonly error: unknown;
  /** Time from sending to the failure, in milliseconds. */
  readonly durationMs: number;
}

export interface DoneInfo extends CallInfo {
  /** The error of the call; undefined when it succeeded. */
  readonly error: unknown;
  /** Number of requests sent. */
  readonly attempts: number;
  /** Time that all attempts of the call waited in the limiter's queue, in milliseconds. */
  readonly queuedMs: number;
  /** Duration of the call with all queueing, attempts and waits, in milliseconds. */
  readonly durationMs: number;
}

export interface RetryInfo extends AttemptInfo {
  /** The failure of the attempt. */
  readonly error: TrackingError;
  /** The wait that the service asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /**
   * The next attempt comes no earlier than after this wait, in milliseconds. After a 429 the limiter holds the attempt back, so this
   * wait is also part of its `queuedMs`.
   */
  readonly waitMs: number;
}

export interface RateLimitedInfo extends AttemptInfo {
  /** How long the service asks to wait, in milliseconds; one second if it names no time. */
  readonly delayMs: number;
}

export interface MismatchInfo extends AttemptInfo {
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
  /** The first 20 mismatches. */
  readonly mismatched: readonly ValidationIssue[];
}

export interface PollInfo {
  /** The id that `poll` or `pollMany` was given. */
  readonly id: string;
  /** Delay of the poll after its due time, in milliseconds. */
  readonly lagMs: number;
}

export interface PollErrorInfo {
  /** The id that `poll` or `pollMany` was given. */
  readonly id: string;
  /** The error of the poll. */
  readonly error: unknown;
  /** Polls of this tracker that failed since its last success, this one included. */
  readonly errorsInARow: number;
  /**
   * True if the network or the service failed: no response, a timeout, or the status 408, 429 or 5xx. By default, such failures end
   * no polling that has succeeded before.
   */
  readonly isOutage: boolean;
}

/**
 * Callbacks around every call and every attempt. A hook that throws or rejects never breaks a call.
 *
 * A call runs its hooks in this order: `onStart`; for each attempt `aroundAttempt` and, if its request is sent, `onRequest` and then
 * exactly one of `onResponse` and `onError`; between two attempts `onRetry`; at the end `onDone`. A call whose input is refused runs
 * no hook. If the option `hooks` is a list, the hooks of its objects are called in the order of the list, and the first
 * `aroundAttempt` is the outermost.
 */
export interface Hooks {
  /** A call was made; next it waits for a token of the limiter. */
  onStart?: ((info: CallInfo) => void) | undefined;
  /**
   * Wraps each attempt from its request until its body is read and checked, so that an `AsyncLocalStorage` or the active span of a
   * tracer covers all of it, and also `onRequest`, `onResponse`, `onRateLimit` and `onMismatch`. Call `send` once, and return its
   * promise, which settles when the attempt ends: it rejects with the failure of the attempt, or resolves without the response.
   * The hook cannot change this outcome, and the call does not wait for other work of the hook.
   *
   * If the hook throws or ends before it calls `send`, or does not call `send` within 1,000 ms, the client logs a warning and sends
   * the request without the hook. If `send` is called again, it returns the same promise, and nothing is sent again.
   *
   * @example
   * const client = new TrackingClient({
   *   hooks: { aroundAttempt: ({ callId }, send) => storage.run({ callId }, send) },
   * });
   */
  aroundAttempt?: (<T>(info: AttemptInfo, send: () => Promise<T>) => Promise<T>) | undefined;
  /** A request is about to be sent. */
  onRequest?: ((info: RequestInfo) => void) | undefined;
  /** A response arrived, whatever its status; a body is read up to `maxResponseBytes`. */
  onResponse?: ((info: ResponseInfo) => void) | undefined;
  /** A request ended without a complete response; `onRetry` follows, or `onDone` if it was the last request. */
  onError?: ((info: ErrorInfo) => void) | undefined;
  /** A failed attempt will be followed by another one. */
  onRetry?: ((info: RetryInfo) => void) | undefined;
  /** The service responded with 429; a limiter then pauses the endpoint (docs/service.md 6.3). */
  onRateLimit?: ((info: RateLimitedInfo) => void) | undefined;
  /** A response has fields that break its schema, but is still used (`invalidResponse`). */
  onMismatch?: ((info: MismatchInfo) => void) | undefined;
  /** A call is over, with its last failure if it has failed; called right before its promise settles. */
  onDone?: ((info: DoneInfo) => void) | undefined;
  /** A poll of `poll`, `pollMany` or `waitUntilStopped` begins; its calls follow. */
  onPoll?: ((info: PollInfo) => void) | undefined;
  /** A poll of `poll`, `pollMany` or `waitUntilStopped` failed, after the retries of its calls. */
  onPollError?: ((info: PollErrorInfo) => void) | undefined;
}

const hook = functionOption<(info: object) => unknown>().optional();

type AroundAttempt = NonNullable<Hooks['aroundAttempt']>;

const HOOKS = {
  onStart: hook,
  aroundAttempt: functionOption<AroundAttempt>().optional(),
  onRequest: hook,
  onResponse: hook,
  onError: hook,
  onRetry: hook,
  onRateLimit: hook,
  onMismatch: hook,
  onDone: hook,
  onPoll: hook,
  onPollError: hook,
} satisfies OptionShape<Hooks>;
const hooksObject = z.strictObject(HOOKS);

/**
 * Checks hooks, and makes one object of a list of them. Each hook is called in the order of the list; one that fails causes a
 * warning, but stops neither the next one nor the call.
 */
export function resolveHooks(
  hooks: Hooks | readonly Hooks[] = [],
  logger: LogAdapter,
  context: ErrorContext,
): Hooks {
  const list = isList(hooks)
    ? hooks.map((each, index) => checkHooks(each, `hooks[${index}]`, context))
    : [checkHooks(hooks, 'hooks', context)];
  const resolved = new Map<string, (info: object) => void>();
  for (const [name, callback] of list.flatMap(({ callbacks }) => Object.entries(callbacks))) {
    if (callback === undefined) continue;
    const callPrevious = resolved.get(name);
    resolved.set(name, (info) => {
      callPrevious?.(info);
      // Each hook gets a copy, so that a hook which changes its copy does not mislead the next hook.
      callOrWarn(name, () => callback({ ...info }), logger);
    });
  }
  const wrappers = list.flatMap(({ aroundAttempt }) =>
    aroundAttempt === undefined ? [] : [guardWrapper(aroundAttempt, logger)],
  );
  const aroundAttempt = wrappers.reduceRight<AroundAttempt | undefined>(
    (inner, outer) => (inner === undefined ? outer : (info, send) => outer(info, () => inner(info, send))),
    undefined,
  );
  return { ...Object.fromEntries(resolved), aroundAttempt };
}

const MAX_WAIT_FOR_SEND_MS = 1_000;

/**
 * Makes a hook safe to call: the attempt is started exactly once, and only the attempt decides the outcome, whatever the hook does.
 * A warning tells if the hook fails, or does not start the attempt.
 */
function guardWrapper(wrapper: AroundAttempt, logger: LogAdapter): AroundAttempt {
  return <T>(info: AttemptInfo, send: () => Promise<T>) =>
    new Promise<T>((resolve) => {
      let settled: Promise<void> | undefined;
      const sendOnce = () => {
        systemClock.clearTimeout(timer);
        if (settled !== undefined) return settled;
        const attempt = send();
        resolve(attempt);
        // The hook gets no response.
        settled = attempt.then(() => {});
        // The hook need not handle the failure.
        settled.catch(() => {});
        return settled;
      };
      const goOn = (problem: string) => {
        if (settled !== undefined) return;
        logger.warn(`Your callback \`aroundAttempt\` ${problem}; the client goes on without it`);
        sendOnce();
      };
      const timer = systemClock.setTimeout(
        () => goOn(`did not call \`send\` within ${MAX_WAIT_FOR_SEND_MS} ms`),
        MAX_WAIT_FOR_SEND_MS,
      );
      const run = async () => {
        try {
          await wrapper({ ...info }, sendOnce);
          goOn('did not call `send`');
        } catch (error) {
          // A hook that passes on the failure of the attempt has not failed itself.
          if (!(await hasFailedWith(error, settled))) throw error;
        } finally {
          sendOnce();
        }
      };
      callOrWarn('aroundAttempt', run, logger);
    });
}

async function hasFailedWith(error: unknown, attempt: Promise<void> | undefined): Promise<boolean> {
  try {
    await attempt;
    return false;
  } catch (reason) {
    return reason === error;
  }
}

function isList(hooks: Hooks | readonly Hooks[]): hooks is readonly Hooks[] {
  return Array.isArray(hooks);
}

function checkHooks(hooks: Hooks, name: string, context: ErrorContext) {
  checkIsObject(name, hooks);
  const { aroundAttempt, ...callbacks } = checkOptions(hooksObject, pickHooks(hooks), name, context);
  // The object is `this`, because it may be an instance of a class.
  return {
    aroundAttempt: aroundAttempt?.bind(hooks),
    callbacks: Object.fromEntries(
      Object.entries(callbacks).map(([hookName, callback]) => [hookName, callback?.bind(hooks)]),
    ),
  };
}

/**
 * Picks the fields that can be hooks: of a plain object all fields, of a class instance only fields whose names look like
 * `onResponse` or `aroundAttempt`.
 */
function pickHooks(hooks: object): object {
  const prototype: unknown = Object.getPrototypeOf(hooks);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return hooks;
  const own = [hooks, prototype]
    .flatMap(Object.getOwnPropertyNames)
    .filter((name) => /^(on|around)[A-Z]/.test(name));
  const inherited = Object.keys(HOOKS).filter((name) => name in hooks);
  return Object.fromEntries([...own, ...inherited].map((name) => [name, Reflect.get(hooks, name)]));
}

import { kindOf, type ValidationIssue } from './common/validation.ts';
import type { EndpointName } from './endpoints.ts';
import { ConfigurationError, type TrackingError } from './errors.ts';

/** Takes log lines; the console is one, and so are most logging libraries. Fields never hold a secret. */
export interface Logger {
  /** Takes a line about what happens inside. */
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Takes a line about a change worth knowing. */
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Takes a line about something to look at. */
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Takes a line about a failure. */
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** From all lines to none. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
/** The least urgent lines that are logged. */
export type LogLevel = (typeof LOG_LEVELS)[number];

const METHODS = ['debug', 'info', 'warn', 'error'] as const;

/** Rejects a logger that lacks a method. */
export function checkLogger(logger: Logger): Logger {
  for (const method of METHODS) {
    // `Object` makes something with properties of null, too: options come from callers without types.
    const found: unknown = Reflect.get(Object(logger), method);
    if (typeof found === 'function') continue;
    throw new ConfigurationError(`Expected \`logger.${method}\` to be a function, got ${kindOf(found)}`);
  }
  return logger;
}

/** A logger that drops lines below `level`, and that never breaks its caller. */
export function leveledLogger(logger: Logger, level: LogLevel): Logger {
  const lowest = LOG_LEVELS.indexOf(level);
  const at =
    (name: (typeof METHODS)[number]): Logger['debug'] =>
    (message, fields) => {
      if (LOG_LEVELS.indexOf(name) < lowest) return;
      const print = () =>
        logger[name](`[tracking-client] ${message}`, ...(fields === undefined ? [] : [fields]));
      // A broken logger must not cost the caller a response.
      callGuarded(print, () => {});
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** What every hook gets. */
export interface AttemptInfo {
  /** The endpoint; `request` for a path outside the table. */
  readonly endpoint: EndpointName | 'request';
  /** HTTP method. */
  readonly method: string;
  /** Path template, e.g. `/trackers/{trackerId}`. */
  readonly path: string;
  /** Counts from 1. */
  readonly attempt: number;
}

/** A request is about to be sent. */
export interface RequestInfo extends AttemptInfo {
  /** Tokens left in the endpoint's bucket; undefined without a limiter. */
  readonly tokensLeft: number | undefined;
}

/** A response arrived whole. */
export interface ResponseInfo extends RequestInfo {
  /** HTTP status. */
  readonly status: number;
  /** From sending to the end of the body, in milliseconds. */
  readonly durationMs: number;
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
}

/** A failed attempt is followed by another one. */
export interface RetryInfo extends AttemptInfo {
  /** Why the attempt failed. */
  readonly error: TrackingError;
  /** How long the call waits before the next attempt, in milliseconds. */
  readonly delayMs: number;
}

/** The service answered 429. */
export interface RateLimitedInfo extends AttemptInfo {
  /** How long the endpoint pauses, in milliseconds. */
  readonly delayMs: number;
}

/** A response differs from what is documented, and is used all the same (`invalidResponse`). */
export interface MismatchInfo extends AttemptInfo {
  /** Identifies the request when you ask the service's support about it (`x-request-id`). */
  readonly requestId: string | undefined;
  /** The first 20 differences. */
  readonly mismatched: readonly ValidationIssue[];
}

/** Callbacks around every attempt. A hook that throws or rejects never breaks a call. */
export interface Hooks {
  /** A request is about to be sent. */
  onRequest?: ((info: RequestInfo) => void) | undefined;
  /** A response arrived whole, whatever its status. */
  onResponse?: ((info: ResponseInfo) => void) | undefined;
  /** A failed attempt will be followed by another one. */
  onRetry?: ((info: RetryInfo) => void) | undefined;
  /** The service answered 429, and the endpoint pauses. */
  onRateLimit?: ((info: RateLimitedInfo) => void) | undefined;
  /** A response differs from what is documented; what nothing depends on was kept as it came. */
  onMismatch?: ((info: MismatchInfo) => void) | undefined;
}

// Typed against the hooks, so a hook without an entry here does not compile.
const HOOK_NAMES = Object.keys({
  onRequest: true,
  onResponse: true,
  onRetry: true,
  onRateLimit: true,
  onMismatch: true,
} satisfies Record<keyof Hooks, true>);

/** Ties hooks to their object, maybe an instance of a class; the failure of one costs a log line, never the call. */
export function resolveHooks(hooks: Hooks | undefined, logger: Logger): Hooks {
  if (hooks === undefined) return {};
  if (typeof hooks !== 'object' || hooks === null) {
    throw new ConfigurationError(`Expected \`hooks\` to be an object, got ${kindOf(hooks)}`);
  }
  const guarded = HOOK_NAMES.flatMap((name) => {
    const hook: unknown = Reflect.get(hooks, name);
    if (hook === undefined) return [];
    if (typeof hook !== 'function') {
      throw new ConfigurationError(`Expected \`hooks.${name}\` to be a function, got ${kindOf(hook)}`);
    }
    const onFailure = () => logger.warn(`The hook \`${name}\` failed; the call goes on`);
    // A copy: what one hook does to it must not reach the next.
    const call = (info: object) => callGuarded(() => hook.call(hooks, { ...info }), onFailure);
    return [[name, call]];
  });
  return Object.fromEntries(guarded);
}

/** Calls a function of the caller's; neither what it throws nor a promise of it that rejects may break ours. */
export function callGuarded(callback: () => unknown, onFailure: () => void): void {
  try {
    const returned = callback();
    if (returned instanceof Promise) returned.catch(onFailure);
  } catch {
    onFailure();
  }
}

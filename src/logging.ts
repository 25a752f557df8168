import { kindOf, type ValidationIssue } from './common/validation.ts';
import type { EndpointName } from './endpoints.ts';
import { ConfigurationError, type TrackingError } from './errors.ts';

/**
 * Takes log lines: the console, or a logger of pino, winston or NestJS as it is. pino gets the fields first, as it wants them;
 * a logger that has `log` where others have `info`, as that of NestJS, gets them as JSON at the end of the line. Fields never
 * hold a secret.
 */
export interface Logger {
  /** Takes a line about what happens inside. */
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Takes a line about a change worth knowing. */
  info?(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** What takes such lines in a logger without `info`. */
  log?(message: string, fields?: Readonly<Record<string, unknown>>): void;
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
type Method = (typeof METHODS)[number];
type LogLine = (message: string, fields?: Readonly<Record<string, unknown>>) => void;
/** A logger as this package calls it. */
export type Lines = Readonly<Record<Method, LogLine>>;

/** Takes one line and its fields, in the way of one logging library. */
type Print = (method: Method, line: string, fields: Readonly<Record<string, unknown>> | undefined) => unknown;

/** How a logger wants its lines; rejects one that lacks a method. */
function printerOf(logger: Logger): Print {
  // `Object` makes something with properties of null, too: options come from callers without types.
  const methods: Record<string, unknown> = Object(logger);
  const hasInfo = typeof methods['info'] === 'function';
  const nameOf = (method: Method) => (method === 'info' && !hasInfo && 'log' in methods ? 'log' : method);
  for (const method of METHODS) {
    const name = nameOf(method);
    if (typeof methods[name] === 'function') continue;
    throw new ConfigurationError(
      `Expected \`logger.${name}\` to be a function, got ${kindOf(methods[name])}`,
    );
  }
  // Called on the logger, which may be an instance of a class.
  const call = (method: Method, ...given: unknown[]) =>
    // Sound: checked above to be a function.
    Reflect.apply(methods[nameOf(method)] as () => unknown, logger, given);
  // What pino gives its loggers for all the world to see: `pino.symbols.serializersSym`.
  const isPino = Symbol.for('pino.serializers') in methods;
  return (method, line, fields) => {
    if (fields === undefined) return call(method, line);
    if (isPino) return call(method, fields, line);
    if (!hasInfo) return call(method, `${line} ${JSON.stringify(fields)}`);
    return call(method, line, fields);
  };
}

/**
 * A logger that drops lines below a level, and that never breaks its caller.
 *
 * @param logger - where the lines go. Default: the console
 * @param level - the least urgent lines that are logged. Default: the environment variable `TRACKING_LOG`, else `warn`
 * @throws ConfigurationError for a logger that lacks a method, and for a level that is none
 */
export function resolveLogger(logger: Logger = console, level: LogLevel = levelOfEnvironment()): Lines {
  const print = printerOf(logger);
  const lowest = LOG_LEVELS.indexOf(level);
  const at =
    (method: Method): LogLine =>
    (message, fields) => {
      if (LOG_LEVELS.indexOf(method) < lowest) return;
      // A broken logger must not cost the caller a response.
      callGuarded(
        () => print(method, `[tracking-client] ${message}`, fields),
        () => {},
      );
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** @throws ConfigurationError for a level that is none, so that a slip does not look like silence */
export function levelOfEnvironment(): LogLevel {
  const given = globalThis.process?.env?.['TRACKING_LOG'];
  if (given === undefined || given === '') return 'warn';
  const level = LOG_LEVELS.find((one) => one === given.toLowerCase());
  if (level !== undefined) return level;
  throw new ConfigurationError(
    `Expected TRACKING_LOG to be one of ${LOG_LEVELS.join(', ')}, got ${kindOf(given)}`,
  );
}

/** An error in a line of its own: as a field, which is best called `err`, it is shown whole by some loggers and empty by others. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : kindOf(error);
}

/** What every hook gets. */
export interface CallInfo {
  /** Names the call: the same in all hooks and log lines of it, and in no other call (a UUID). */
  readonly callId: string;
  /** The endpoint; `request` for a path outside the table. */
  readonly endpoint: EndpointName | 'request';
  /** HTTP method. */
  readonly method: string;
  /** Path template, e.g. `/trackers/{trackerId}`. */
  readonly path: string;
  /** What the path stands below: the client's base URL, without a slash at its end. */
  readonly baseUrl: string;
}

/** What every hook about an attempt gets. */
export interface AttemptInfo extends CallInfo {
  /** Counts from 1. */
  readonly attempt: number;
  /** How long this attempt waited in the limiter's queue, in milliseconds. */
  readonly queuedMs: number;
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

/** A request ended without a whole response. */
export interface ErrorInfo extends RequestInfo {
  /** Why: ConnectionError, TimeoutError, ResponseValidationError for a body that is too long, or the reason of your signal. */
  readonly error: unknown;
  /** From sending to the failure, in milliseconds. */
  readonly durationMs: number;
}

/** A call is over. */
export interface DoneInfo extends CallInfo {
  /** What the call rejects with; undefined when it succeeded. */
  readonly error: unknown;
  /** How many requests were sent. */
  readonly attempts: number;
  /** How long all its attempts waited in the limiter's queue, in milliseconds. */
  readonly queuedMs: number;
  /** From the call to its end, with all queueing, attempts and waits, in milliseconds. */
  readonly durationMs: number;
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

/** A poll of a tracker begins. */
export interface PollInfo {
  /** The tracker, as it was given to `poll` or `pollMany`. */
  readonly id: string;
  /** How long ago it was due, in milliseconds: a slow reader, `concurrency` and `maxPerSecond` hold polls back. */
  readonly lagMs: number;
}

/**
 * Callbacks around every call and every attempt. A hook that throws or rejects never breaks a call.
 *
 * Of one call, in this order: `onStart`; for each attempt `onRequest`, then exactly one of `onResponse` and `onError`; between two
 * attempts `onRetry`; `onDone`. An input that breaks a rule starts no call.
 */
export interface Hooks {
  /** A call was made; it waits for its token next. */
  onStart?: ((info: CallInfo) => void) | undefined;
  /** A request is about to be sent. */
  onRequest?: ((info: RequestInfo) => void) | undefined;
  /** A response arrived whole, whatever its status. */
  onResponse?: ((info: ResponseInfo) => void) | undefined;
  /** A request ended without a whole response: `onRetry` follows, or `onDone` where it was the last. */
  onError?: ((info: ErrorInfo) => void) | undefined;
  /** A failed attempt will be followed by another one. */
  onRetry?: ((info: RetryInfo) => void) | undefined;
  /** The service answered 429, and the endpoint pauses. */
  onRateLimit?: ((info: RateLimitedInfo) => void) | undefined;
  /** A response differs from what is documented; what nothing depends on was kept as it came. */
  onMismatch?: ((info: MismatchInfo) => void) | undefined;
  /** A call is over, with its last failure if it has failed; called right before its promise settles. */
  onDone?: ((info: DoneInfo) => void) | undefined;
  /** A poll of `poll` or `pollMany` begins; its calls follow. */
  onPoll?: ((info: PollInfo) => void) | undefined;
}

// Typed against the hooks, so a hook without an entry here does not compile.
const HOOK_NAMES = Object.keys({
  onStart: true,
  onRequest: true,
  onResponse: true,
  onError: true,
  onRetry: true,
  onRateLimit: true,
  onMismatch: true,
  onDone: true,
  onPoll: true,
} satisfies Record<keyof Hooks, true>);

/** Ties hooks to their object, maybe an instance of a class; the failure of one costs a log line, never the call. */
export function resolveHooks(hooks: Hooks | undefined, logger: Lines): Hooks {
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

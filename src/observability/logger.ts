import { callGuarded } from '../common/guarded-call.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

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
export type LogAdapter = Readonly<Record<Method, LogLine>>;

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
export function resolveLogger(logger: Logger = console, level: LogLevel = levelOfEnvironment()): LogAdapter {
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
export function formatError(error: unknown): string {
  return error instanceof Error ? error.message : kindOf(error);
}

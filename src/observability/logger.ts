import { callGuarded } from '../common/callbacks.ts';
import { refuseOption } from '../common/check-options.ts';
import { systemClock } from '../common/clock.ts';
import { readEnvironment } from '../common/environment.ts';
import { maskUserInfo, readError } from '../common/foreign.ts';
import { quoteValue } from '../common/messages.ts';
import { hasMethods } from '../common/option-schemas.ts';

/** The fields of a log line besides its text. They never contain a secret. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Writes log lines: the console, or another logger. Loggers of pino, winston, bunyan and NestJS need no adapter. A logger with
 * `log` instead of `info` gets the fields as JSON at the end of the line. So does the console, but a line about a call has no JSON.
 */
export interface Logger {
  /** Logs a line of the level `debug`. */
  debug(message: string, fields?: LogFields): void;
  /** Logs a line of the level `info`. */
  info?(message: string, fields?: LogFields): void;
  /** Logs the lines of the level `info` in a logger without the method `info`. */
  log?(message: string, fields?: LogFields): void;
  /** Logs a line of the level `warn`. */
  warn(message: string, fields?: LogFields): void;
  /** Logs a line of the level `error`. */
  error(message: string, fields?: LogFields): void;
}

/** The levels, from all lines to none. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
/** The lowest level that is logged. */
export type LogLevel = (typeof LOG_LEVELS)[number];

const DEFAULT_LOG_LEVEL: LogLevel = 'warn';

const METHODS = ['debug', 'info', 'warn', 'error'] as const;
type Method = (typeof METHODS)[number];
type LogLine = (message: string, fields?: LogFields) => void;

/** A logger as this package calls it: it drops lines below its level, and never breaks its caller. */
export interface LogAdapter extends Readonly<Record<Method, LogLine>> {
  readonly level: LogLevel;
  /** Logs the first line of each `key` as a warning, and later lines of the same `key` as `debug`. */
  warnOnce(key: string, message: string, fields?: LogFields): void;
}

/**
 * Adapts a logger. Without a level, the environment variable `TRACKING_LOG` decides, else `warn`.
 *
 * @param maskKey - masks the client's API key in the text of every line
 */
export function resolveLogger(
  logger: Logger = console,
  level?: LogLevel,
  maskKey: (text: string) => string = (text) => text,
): LogAdapter {
  const print = createPrinter(logger);
  const environment = (level === undefined && readEnvironment('TRACKING_LOG')) || '';
  const environmentLevel = LOG_LEVELS.find((name) => name === environment.toLowerCase());
  const lowest = level ?? environmentLevel ?? DEFAULT_LOG_LEVEL;
  const createMethod = (method: Method): LogLine => {
    const isLogged = LOG_LEVELS.indexOf(method) >= LOG_LEVELS.indexOf(lowest);
    if (!isLogged) return () => {};
    return (message, fields) => {
      const line = `[tracking-client] ${maskUserInfo(maskKey(message))}`;
      const printPlainLine = () => callGuarded(() => print(method, line, undefined));
      // If the fields cannot be written, such as a bigint as JSON, the line is logged without them.
      callGuarded(() => print(method, line, fields), fields && printPlainLine);
    };
  };
  const debug = createMethod('debug');
  const warn = createMethod('warn');
  const warnedKeys = new Set<string>();
  const warnOnce = (key: string, message: string, fields?: LogFields) => {
    const log = warnedKeys.has(key) ? debug : warn;
    warnedKeys.add(key);
    log(message, fields);
  };
  if (environment !== '' && environmentLevel === undefined) {
    const rule = `Expected TRACKING_LOG to be one of ${LOG_LEVELS.join(', ')}`;
    warn(`${rule}, got ${quoteValue(environment)}; the log level is "${lowest}"`);
  }
  return { level: lowest, debug, info: createMethod('info'), warn, error: createMethod('error'), warnOnce };
}

const LINE_EVERY_MS = 60_000;

/**
 * Limits log lines to one a minute for each reason. The function returns undefined if this line must be left out, or the number of
 * lines that were left out before this line.
 */
export function limitLines(): (reason?: string) => number | undefined {
  const lines = new Map<string, { readonly nextLineAt: number; leftOut: number }>();
  return (reason = '') => {
    const now = systemClock.now();
    const latest = lines.get(reason);
    if (latest !== undefined && now < latest.nextLineAt) {
      latest.leftOut += 1;
      return undefined;
    }
    lines.set(reason, { nextLineAt: now + LINE_EVERY_MS, leftOut: 0 });
    return latest?.leftOut ?? 0;
  };
}

function createPrinter(logger: Logger) {
  const methods: Record<string, unknown> = Object(logger);
  const hasInfo = typeof methods['info'] === 'function';
  const nameMethod = (method: Method) => (method === 'info' && !hasInfo && 'log' in methods ? 'log' : method);
  for (const name of METHODS.map(nameMethod))
    if (typeof methods[name] !== 'function') refuseOption(`logger.${name}`, 'a function', methods[name]);
  const call = (method: Method, ...args: unknown[]) =>
    // The logger is `this`, because it may be an instance of a class. Safe cast: the loop above checked the method.
    Reflect.apply(methods[nameMethod(method)] as () => unknown, logger, args);
  const isPino = Symbol.for('pino.serializers') in methods;
  const isBunyan = typeof methods['addStream'] === 'function' && Array.isArray(methods['streams']);
  const isWinston = Array.isArray(methods['transports']) && typeof methods['isLevelEnabled'] === 'function';
  return (method: Method, line: string, fields: LogFields | undefined): unknown => {
    if (fields === undefined) return call(method, line);
    if (isPino) return call(method, fields, line);
    if (logger === console) return printToConsole(method, line, fields);
    const plainFields = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, describeError(value)]),
    );
    if (isBunyan) return call(method, plainFields, line);
    // With text and fields as two arguments, winston reads a `%d` in the text as a placeholder and drops the fields.
    if (isWinston) return call(method, { ...plainFields, message: line });
    if (!hasInfo) return call(method, `${line} ${JSON.stringify(plainFields)}`);
    return call(method, line, plainFields);
  };
}

/** Prints one line. The fields of a call are left out, because its text has all that a reader needs. */
function printToConsole(method: Method, line: string, { err, ...fields }: LogFields): void {
  const isComplete = 'callId' in fields || Object.keys(fields).length === 0;
  const text = isComplete ? line : `${line} ${JSON.stringify(fields)}`;
  if (err === undefined) console[method](text);
  // The console would replace a `%d` in the text by the error.
  else console[method](text.replaceAll('%', '%%'), err);
}

/** winston would print `{}` for an error. */
function describeError(value: unknown): unknown {
  const error = readError(value);
  if (error === undefined) return value;
  const { name, message, code, stack } = error;
  return { name, message, ...(code !== '' && { code }), stack };
}

export function formatError(error: unknown): string {
  return readError(error)?.message ?? `${quoteValue(error)} was thrown instead of an Error`;
}

/** Calls a callback of the user. If it fails, a warning is logged, and nothing else happens. */
export function callOrWarn(name: string, callback: () => unknown, logger: LogAdapter): void {
  callGuarded(callback, (error) =>
    logger.warn(`Your callback \`${name}\` threw an error, which the client ignores: ${formatError(error)}`),
  );
}

interface Emitter {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  listeners(event: 'error'): readonly object[];
}

/** The listeners of this package have their log under this symbol. `Symbol.for` gives all copies of the package the same symbol. */
const LOG: unique symbol = Symbol.for('tracking-client.driverErrors');

/**
 * Adds an `error` listener to a driver's client or pool, unless this package has added one before. Without a listener, Node ends
 * the process when the server goes away. At most one line a minute is logged, and none while the program has its own listener.
 *
 * @param server - the name of the server, for the line
 * @param client - ignored if it emits no events
 * @param logger - where to log. Default: if a `RedisLimiter` with a `logger` uses the same `client`, the logger of the limiter;
 * else the console
 */
export function reportDriverErrors(server: string, client: object, logger?: Logger): void {
  if (!isEmitter(client)) return;
  const log = resolveLogger(logger, 'warn');
  const known = client.listeners('error').find((listener) => LOG in listener);
  if (known !== undefined) {
    if (logger !== undefined) Object.assign(known, { [LOG]: log });
    return;
  }
  const countLeftOut = limitLines();
  const report = (error: unknown) => {
    if (client.listeners('error').length > 1 || countLeftOut() === undefined) return;
    listener[LOG].warn(`The ${server} client reported an error: ${formatError(error)}`);
  };
  const listener = Object.assign(report, { [LOG]: log });
  client.on('error', listener);
}

function isEmitter(client: object): client is Emitter {
  return hasMethods(client, 'on', 'listeners');
}

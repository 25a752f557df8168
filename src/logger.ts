import { callGuarded } from './call-guarded.ts';
import { ConfigurationError } from './errors.ts';
import { kindOf } from './validation.ts';

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

/**
 * Checks that a logger has a method for every level.
 *
 * @throws ConfigurationError naming the method that is missing
 */
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
      // A broken logger must not cost the caller an answer.
      callGuarded(print, () => {});
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

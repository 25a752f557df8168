import { hasMethods } from '../common/validation.ts';
import { formatError, type LogAdapter, type Logger, limitLines, resolveLogger } from './logger.ts';

interface Emitter {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  listeners(event: 'error'): readonly object[];
}

/** Marks a listener of this package, so that another copy of the package finds it. */
const BRAND = Symbol.for('tracking-client.driverErrors');
/** The log of each listener that this copy has added. */
const logOfListener = new WeakMap<object, LogAdapter>();

/**
 * Adds an `error` listener to a driver's client or pool, unless it has one from here. Without a listener, Node ends the process
 * when the server goes away. At most one line a minute is logged, and none while the program has a listener of its own.
 *
 * @param server - the name of the server, for the line
 * @param client - ignored if it emits no events
 * @param logger - where to log. Default: the console, or the logger of a limiter on the same client
 */
export function reportDriverErrors(server: string, client: object, logger?: Logger): void {
  if (!isEmitter(client)) return;
  const log = resolveLogger(logger, 'warn');
  const known = client.listeners('error').find((listener) => BRAND in listener);
  if (known !== undefined) {
    if (logger !== undefined) logOfListener.set(known, log);
    return;
  }
  const countLeftOut = limitLines();
  const listener = (error: unknown) => {
    if (client.listeners('error').length > 1 || countLeftOut() === undefined) return;
    logOfListener.get(listener)?.warn(`The ${server} client reported an error: ${formatError(error)}`);
  };
  logOfListener.set(listener, log);
  client.on('error', Object.assign(listener, { [BRAND]: true }));
}

function isEmitter(client: object): client is Emitter {
  return hasMethods(client, 'on', 'listeners');
}

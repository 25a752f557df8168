import { type Command, Option } from 'commander';
import { ConfigurationError, type Logger, TrackingClient } from 'tracking-client';
import { CommandError } from './terminal.ts';
import { plain } from './text.ts';

/** The flags of every command that asks the service. */
export interface ServiceFlags {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly allowInsecureHttp?: boolean;
  readonly json?: boolean;
}

/** Adds the flags of a command that asks the service. */
export function addServiceFlags(command: Command): Command {
  return command
    .option('--json', 'print JSON, one value a line')
    .addOption(new Option('--base-url <url>', 'where the service is').env('TRACKING_BASE_URL'))
    .addOption(new Option('--api-key <key>', 'better set by').env('TRACKING_API_KEY'))
    .option('--allow-insecure-http', 'send the key over http: (TRACKING_ALLOW_INSECURE_HTTP=1)');
}

/** Makes the client of the flags and the environment; without a key one sentence says what to set. */
export function makeClient(flags: ServiceFlags, logger: Logger): TrackingClient {
  const { baseUrl, apiKey } = flags;
  const ways = 'To try it without any: `npx tracking-client fake` in another terminal';
  if (!baseUrl)
    throw new CommandError(`Set TRACKING_BASE_URL to the service's URL, or give --base-url. ${ways}`);
  if (!apiKey) throw new CommandError(`Set TRACKING_API_KEY to your API key. ${ways}`);
  const isAllowed = /^(1|true|yes)$/i.test(process.env['TRACKING_ALLOW_INSECURE_HTTP'] ?? '');
  const allowInsecureHttp = flags.allowInsecureHttp ?? isAllowed;
  try {
    return new TrackingClient({ baseUrl, apiKey, allowInsecureHttp, logger });
  } catch (error) {
    if (error instanceof ConfigurationError) throw new CommandError(nameFlags(error.message));
    throw error;
  }
}

/** The command has the client's options as flags: `baseUrl` is `--base-url`. */
function nameFlags(message: string): string {
  return message
    .replaceAll('`baseUrl`', '`--base-url`')
    .replaceAll('`apiKey`', '`--api-key`')
    .replaceAll('`allowInsecureHttp`', '`--allow-insecure-http`');
}

/** A logger of a client: its warnings as lines. */
export function makeLogger(show: (line: string) => void): Logger {
  const log: Logger['warn'] = (message, fields) => {
    const { reason } = fields ?? {};
    // The name of an error's class tells a person nothing.
    const end = typeof reason === 'string' && !/^\w+Error$/.test(reason) ? `: ${reason}` : '';
    show(plain(message.replace(/^\[tracking-client\] /, '') + end));
  };
  return { debug: log, info: log, warn: log, error: log };
}

import { type Command, Option } from 'commander';
import { ConfigurationError, type Logger, type TrackerInput, TrackingClient } from 'tracking-client';
import { isUnencrypted, quoteUrl } from '../common/urls.ts';
import { wrap } from './layout.ts';
import { CommandError, plain, type Terminal } from './terminal.ts';

export interface ServiceFlags {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly allowInsecureHttp?: boolean;
  readonly json?: boolean;
}

export const MAX_HELP_WIDTH = 80;
export const JSON_HELP = 'print JSON, one value per line';
export const SECRET_HELP =
  'other users of this machine can read command lines, so set the environment variable instead';

/** Adds lines below the help of a command. */
export function addHelpLines(command: Command, { width }: Terminal, ...lines: readonly string[]): Command {
  const text = lines.map((line) => wrap('', line, Math.min(width, MAX_HELP_WIDTH))).join('\n');
  return command.addHelpText('after', `\n${text}`);
}

export function addServiceFlags(command: Command): Command {
  return command
    .option('--json', JSON_HELP)
    .addOption(new Option('--base-url <url>', 'URL of the service').env('TRACKING_BASE_URL'))
    .addOption(new Option('--api-key <key>', `API key; ${SECRET_HELP}`).env('TRACKING_API_KEY'))
    .option(
      '--allow-insecure-http',
      'allow http:// URLs of hosts other than this machine (env: TRACKING_ALLOW_INSECURE_HTTP=1)',
    );
}

const LATE_POLLS = 'Polls start more than one interval late; raise `--interval`';

/** Creates a logger for the terminal; its lines name a tracker by the tracking number instead of the id. */
function createLogger(terminal: Terminal, numberById: ReadonlyMap<string, string>): Logger {
  const log: Logger['warn'] = (message, fields) => {
    const { reason, id, lagMs } = fields ?? {};
    const start = typeof id === 'string' ? `${plain(numberById.get(id) ?? id)}  ` : '';
    const end = typeof reason === 'string' && !/^\w+Error$/.test(reason) ? `: ${reason}` : '';
    // The message about late polls names options of the library. The command has a flag only for the interval.
    const text = lagMs === undefined ? message.replace(/^\[tracking-client\] /, '') : LATE_POLLS;
    terminal.warn(start + plain(text + end));
  };
  return { debug: log, info: log, warn: log, error: log };
}

export function isInsecureHttpAllowed({ allowInsecureHttp }: ServiceFlags): boolean {
  const variable = process.env['TRACKING_ALLOW_INSECURE_HTTP'] ?? '';
  return allowInsecureHttp ?? /^(1|true|yes)$/i.test(variable);
}

export function createClient(
  flags: ServiceFlags,
  terminal: Terminal,
  numberById: ReadonlyMap<string, string> = new Map(),
): TrackingClient {
  const { baseUrl, apiKey } = flags;
  const advice =
    'To try the command without an account, run `npx --no-install tracking-client fake` in another terminal';
  if (!baseUrl)
    throw new CommandError(
      `The URL of the service is missing; set TRACKING_BASE_URL, or pass --base-url. ${advice}`,
    );
  if (!apiKey?.trim()) throw new CommandError(`The API key is missing; set TRACKING_API_KEY. ${advice}`);
  const allowInsecureHttp = isInsecureHttpAllowed(flags);
  const baseUrlSource = nameSource('--base-url', 'TRACKING_BASE_URL', baseUrl);
  if (!allowInsecureHttp && isUnencrypted(baseUrl))
    throw new CommandError(
      `${baseUrlSource} begins with http://, so the API key would be sent unencrypted; use https://, or set \`--allow-insecure-http\``,
    );
  try {
    const logger = createLogger(terminal, numberById);
    return new TrackingClient({ baseUrl, apiKey, allowInsecureHttp, logger });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const { option, rule } = error;
    // Name the flag or the environment variable instead of the option.
    if (option === 'baseUrl')
      throw new CommandError(`${baseUrlSource} ${rule}; write it as in https://api.example.com/public/v1`);
    if (option === 'apiKey')
      throw new CommandError(`Expected ${nameSource('--api-key', 'TRACKING_API_KEY', apiKey)} ${rule}`);
    throw error;
  }
}

/** Names where the user set a value: the flag, or the variable that stands in for the flag. */
function nameSource(flag: string, variable: string, value: string): string {
  return process.env[variable] === value ? variable : `\`${flag}\``;
}

export interface ShipmentFlags extends ServiceFlags {
  readonly courier?: readonly string[];
  readonly destination?: string;
  readonly postCode?: string;
}

export function addShipmentFlags(command: Command): Command {
  command
    .option('--courier <code>', 'courier code; can be given up to three times', repeatable(String))
    .option('--destination <country>', 'destination country code, which some couriers need')
    .option('--post-code <code>', 'destination post code, which some couriers need');
  return addServiceFlags(command);
}

export function buildInput(
  trackingNumber: string,
  { courier, destination: destinationCountryCode, postCode: destinationPostCode }: ShipmentFlags,
): TrackerInput {
  const courierCode = courier === undefined ? undefined : [...courier];
  return { trackingNumber, courierCode, destinationCountryCode, destinationPostCode };
}

/** A number, with a unit or without. */
const NUMBER_TEXT = /^-?[\d.]{1,10}[a-z]?$/;

/**
 * Rejects the value of a flag. The message shows only a number, because anything else may be a secret in the wrong place.
 *
 * @param text - the value; leave it out for an API key, which may be a number
 */
export function rejectFlag(flag: string, rule: string, text?: string): never {
  const isNumber = text !== undefined && NUMBER_TEXT.test(text);
  const got = text === '' ? ', got an empty string' : isNumber ? `, got "${text}"` : '';
  throw new CommandError(`Expected \`--${flag}\` to be ${rule}${got}`);
}

export function repeatable<Value>(parse: (text: string) => Value) {
  return (text: string, earlier: readonly Value[] = []): readonly Value[] => [...earlier, parse(text)];
}

export function parseWholeNumber(text: string, max: number, min = 0): number | undefined {
  const number = /^\d{1,7}$/.test(text) ? Number(text) : -1;
  return number >= min && number <= max ? number : undefined;
}

export function wholeNumber(flag: string, max: number, min = 0) {
  return (text: string): number =>
    parseWholeNumber(text, max, min) ?? rejectFlag(flag, `a whole number from ${min} to ${max}`, text);
}

/** Parses a secret, which no message may show; `source` names where the user set it. An empty value counts as missing. */
export function parseSecret(source: string, text: string): string | undefined {
  if (text === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  throw new CommandError(`Expected ${source} to be visible ASCII characters without spaces`);
}

export function secretOption(flags: string, description: string): Option {
  const option = new Option(flags, description).env('TRACKING_WEBHOOK_SECRET');
  return option.argParser((text) =>
    parseSecret(nameSource(`--${option.name()}`, option.envVar ?? '', text), text),
  );
}

export function parseWebhookUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.username === '' && url.password === '') return url.href;
  const rule = 'a URL that begins with http:// or https:// and has no user name or password';
  throw new CommandError(`Expected \`--webhook-url\` to be ${rule}, got ${quoteUrl(text)}`);
}

/** Parses a host to listen on. An empty host would bind every address, so it is rejected. */
function parseHost(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : rejectFlag('host', 'an address or a host name', text);
}

export function addListenFlags(command: Command, port: number): Command {
  return command
    .option(
      '-p, --port <number>',
      'port to listen on; 0 for any free port',
      wholeNumber('port', 65_535),
      port,
    )
    .option('--host <address>', 'address to listen on', parseHost, '127.0.0.1');
}

import { parseArgs } from 'node:util';
import { MAX_API_KEYS } from '../options.ts';
import { PLAY_NAMES } from '../shipments/plays.ts';

/** A flag that the command does not have, or a value that makes no sense. */
export class UsageError extends Error {}

const FLAGS = {
  port: { type: 'string', short: 'p', default: '4010' },
  host: { type: 'string', default: '127.0.0.1' },
  play: { type: 'string', multiple: true },
  speed: { type: 'string', default: '1' },
  'webhook-url': { type: 'string' },
  'webhook-secret': { type: 'string' },
  duplicates: { type: 'string', default: '0' },
  shuffle: { type: 'boolean', default: false },
  'api-key': { type: 'string', multiple: true },
  'per-call': { type: 'boolean', default: false },
  seed: { type: 'string', default: '1' },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
} as const;

export const USAGE =
  'tracking-client-fake [--port 4010] [--webhook-url <url>] [--speed 60] [--play delivered]';

export const HELP = `Usage: ${USAGE}

Serves a fake tracking service over HTTP, for programs in any language. It keeps
everything in memory, and prints each request and each webhook in one line.

  -p, --port <number>         Port; 0 for any free one. Default 4010
      --host <address>        Address to bind. Default 127.0.0.1
      --play <name>           What happens to each new tracking number. Give it again,
                              and the plays take turns. Default delivered
                              ${PLAY_NAMES.join(', ')}
      --speed <number>        How many times faster than real time. Default 1; the play
                              delivered takes 77 hours, at 60 about 77 minutes
      --webhook-url <url>     Where to push webhooks. Default: no webhooks. What is not
                              accepted is sent up to 20 times: the service's six days
                              of attempts take 32 seconds
      --webhook-secret <s>    Sent with each push as "Authorization: Bearer <s>"
      --duplicates <number>   Sends each push so many times more. Default 0
      --shuffle               Sends what waits in another order
      --api-key <key>         A key to accept; up to 20. Default: any key
      --per-call              Gives the account the per-call plan, too
      --seed <text>           Decides every id. Default 1
  -h, --help                  Prints this
  -v, --version               Prints the version

Stop it with Ctrl-C.`;

/** Values that may be secret are left out. */
function reject(flag: keyof typeof FLAGS, rule: string, got?: string): never {
  const end = got === undefined ? '' : `, got ${JSON.stringify(got)}`;
  throw new UsageError(`Expected \`--${flag}\` to be ${rule}${end}`);
}

function wholeNumber(flag: 'port' | 'duplicates', text: string, max: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) <= max) return Number(text);
  return reject(flag, `a whole number from 0 to ${max}`, text);
}

function webhookUrlOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (isHttp && url.username === '' && url.password === '') return url.href;
  return reject('webhook-url', 'an http or https URL without a user name');
}

function secretOf(flag: 'webhook-secret' | 'api-key', text: string): string {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  return reject(flag, 'visible ASCII characters without spaces');
}

function valuesOf(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS }).values;
  } catch (error) {
    // Node's own words name the flag; what follows them is advice about dashes.
    const [words = ''] = String(error instanceof Error ? error.message : error).split(/\.? To specify|\.?\n/);
    throw new UsageError(words);
  }
}

/** Reads the arguments of the command: the flags, or what else to print. */
export function parseFlags(args: readonly string[]) {
  const values = valuesOf(args);
  if (values.help) return 'help';
  if (values.version) return 'version';
  const { host, 'webhook-url': webhookUrl, 'webhook-secret': secret, 'api-key': apiKeys = [] } = values;
  // An empty host would bind every address.
  if (!/^[\w.:-]+$/.test(host)) reject('host', 'an address or a host name', host);
  const speed = Number(values.speed);
  if (!(speed >= 1)) reject('speed', 'a number of at least 1', values.speed);
  if (apiKeys.length > MAX_API_KEYS)
    throw new UsageError(`Expected \`--api-key\` at most ${MAX_API_KEYS} times, got ${apiKeys.length}`);
  const plays = values.play ?? ['delivered'];
  return {
    host,
    port: wholeNumber('port', values.port, 65_535),
    apiKeys: apiKeys.map((key) => secretOf('api-key', key)),
    plays: plays.map(
      (name) => PLAY_NAMES.find((play) => play === name) ?? reject('play', PLAY_NAMES.join(', '), name),
    ),
    speed,
    seed: values.seed,
    hasPerCallPlan: values['per-call'],
    webhookUrl: webhookUrl === undefined ? undefined : webhookUrlOf(webhookUrl),
    webhookSecret: secret === undefined ? undefined : secretOf('webhook-secret', secret),
    duplicates: wholeNumber('duplicates', values.duplicates, 100),
    shuffle: values.shuffle,
  };
}

export type Flags = Exclude<ReturnType<typeof parseFlags>, string>;

import { type Command, Option } from 'commander';
import { CommandError } from './terminal.ts';

/** Rejects the text of a flag; a text that may be secret is left out. */
export function rejectFlag(flag: string, rule: string, text?: string): never {
  const end = text === undefined ? '' : `, got ${JSON.stringify(text)}`;
  throw new CommandError(`Expected \`--${flag}\` to be ${rule}${end}`);
}

/** Makes a parser of a flag that may be given several times. */
export function several<Value>(parse: (text: string) => Value) {
  return (text: string, earlier: readonly Value[] = []): readonly Value[] => [...earlier, parse(text)];
}

/** Makes a parser of a flag that is a whole number. */
export function wholeNumber(flag: string, max: number) {
  return (text: string): number => {
    if (/^\d{1,7}$/.test(text) && Number(text) <= max) return Number(text);
    return rejectFlag(flag, `a whole number from 0 to ${max}`, text);
  };
}

/** Reads a flag that holds a secret, which no message may show; an empty one is none. */
export function parseSecret(flag: string, text: string): string | undefined {
  if (text === '') return undefined;
  return /^[\x21-\x7e]+$/.test(text) ? text : rejectFlag(flag, 'visible ASCII characters without spaces');
}

/** The flag for the secret of webhooks. */
export function secretOption(flags: string, description: string): Option {
  const option = new Option(flags, description).env('TRACKING_WEBHOOK_SECRET');
  return option.argParser((text) => parseSecret(option.name(), text));
}

/** Reads a host to listen on; an empty one would bind every address. */
function parseHost(text: string): string {
  return /^[\w.:-]+$/.test(text) ? text : rejectFlag('host', 'an address or a host name', text);
}

/** Adds the flags of a command that listens. */
export function addListenFlags(command: Command, port: number): Command {
  return command
    .option('-p, --port <number>', 'port; 0 for any free one', wholeNumber('port', 65_535), port)
    .option('--host <address>', 'address to bind', parseHost, '127.0.0.1');
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

/** Reads the time between two polls, in milliseconds. */
export function parseInterval(text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,5})([smh])?$/.exec(text) ?? [];
  const intervalMs = Number(count) * (UNITS_MS[unit] ?? 0);
  if (intervalMs >= 1000 && intervalMs <= 24 * 3_600_000) return intervalMs;
  return rejectFlag('interval', 'from 1s to 24h, as in 30s, 15m or 2h', text);
}

/** Reads which character stands between two fields. */
export function parseDelimiter(text: string): string {
  const delimiter = text === 'tab' ? '\t' : text;
  if (delimiter.length === 1 && !/["\r\n]/.test(delimiter)) return delimiter;
  return rejectFlag('delimiter', 'one character, or tab', text);
}

/** Reads the name of an encoding. */
export function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding;
  } catch {
    return rejectFlag('encoding', 'an encoding such as utf-8, latin1 or utf-16le', text);
  }
}

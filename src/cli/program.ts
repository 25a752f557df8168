import { Command, CommanderError, Option } from 'commander';
import {
  ConfigurationError,
  RequestValidationError,
  type TrackerInput,
  TrackingError,
  VERSION,
} from 'tracking-client';
import { FIELDS } from './columns.ts';
import {
  FAILURE_KINDS,
  type FakeFlags,
  hostOf,
  PLAY_CHOICES,
  secretOf,
  wholeNumber,
} from './fake-options.ts';
import { NAMES, type NamedTrackersOptions } from './named-trackers.ts';
import { addServiceFlags, makeClient, makeLogger, type ServiceFlags } from './service.ts';
import { CommandError, EXIT, OutputError, type Terminal, warn } from './terminal.ts';
import { plain } from './text.ts';

interface HintFlags {
  readonly courier?: readonly string[];
  readonly destination?: string;
  readonly postCode?: string;
}

interface ImportFlags {
  readonly failures?: string;
  readonly overwrite?: boolean;
  readonly delimiter?: string;
  readonly encoding: string;
}

/** More trackers than these are no list for a person; the client reads any number. */
const MAX_LISTED = 100_000;

const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

function parseDurationMs(flag: string, text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,5})([smh])?$/.exec(text) ?? [];
  const durationMs = Number(count) * (UNITS_MS[unit] ?? 0);
  if (durationMs >= 1000 && durationMs <= 24 * 3_600_000) return durationMs;
  throw new CommandError(
    `Expected \`--${flag}\` to be from 1s to 24h, as in 30s, 15m or 2h, got ${JSON.stringify(text)}`,
  );
}

function buildInput(trackingNumber: string, { courier, destination, postCode }: HintFlags): TrackerInput {
  return {
    trackingNumber,
    ...(courier !== undefined && { courierCode: [...courier] }),
    ...(destination !== undefined && { destinationCountryCode: destination }),
    ...(postCode !== undefined && { destinationPostCode: postCode }),
  };
}

function addHints(command: Command): Command {
  return command
    .option('--courier <code>', 'courier code; up to three times', collect)
    .option('--destination <country>', 'country code, which some couriers need')
    .option('--post-code <code>', 'of the destination, which some couriers need');
}

/** Breaks names into lines for help on a screen of 80 columns. */
function wrapNames(names: readonly string[]): string {
  return names
    .join(', ')
    .replace(/(.{1,78})(?: |$)/g, '$1\n')
    .trimEnd();
}

/** Reads which character stands between two fields. */
function parseDelimiter(text: string): string {
  const delimiter = text === 'tab' ? '\t' : text;
  if (delimiter.length === 1 && !/["\r\n]/.test(delimiter)) return delimiter;
  throw new CommandError(`Expected \`--delimiter\` to be one character, or tab, got ${JSON.stringify(text)}`);
}

/** Reads the name of an encoding. */
function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding;
  } catch {
    throw new CommandError(
      `Expected \`--encoding\` to be one such as utf-8, latin1 or utf-16le, got ${JSON.stringify(text)}`,
    );
  }
}

/** The whole command; each part is loaded when it is asked for. */
export function createProgram(terminal: Terminal, end: (exitCode: number) => void): Command {
  const logger = makeLogger((line) => warn(terminal, line));
  const program = new Command('tracking-client')
    .description('track shipments from a terminal')
    .version(VERSION, '-v, --version', 'print the version')
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Set TRACKING_BASE_URL and TRACKING_API_KEY; without a key, run "fake" to try it.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing found, 130 Ctrl-C.`,
    );

  const track = program.command('track <number>').description('print the timeline of one shipment');
  addServiceFlags(addHints(track)).action(async (number: string, flags: ServiceFlags & HintFlags) => {
    const module = await import('./track.ts');
    const options = { json: flags.json ?? false, terminal };
    end(await module.track(makeClient(flags, logger), buildInput(number, flags), options));
  });

  const watch = program
    .command('watch [numbers...]')
    .description('show shipments until none is tracked any more')
    .option('--all', 'all trackers of the account that are still tracked')
    .option('--interval <time>', 'time between two polls: 30s, 15m, 2h', '15m');
  addServiceFlags(addHints(watch)).action(
    async (numbers: string[], flags: ServiceFlags & HintFlags & { all?: boolean; interval: string }) => {
      if (numbers.length > 0 === (flags.all ?? false))
        throw new CommandError('Expected either tracking numbers or `--all`');
      const watched = flags.all ? 'all' : { inputs: numbers.map((number) => buildInput(number, flags)) };
      const intervalMs = parseDurationMs('interval', flags.interval);
      const module = await import('./watch.ts');
      const options = { intervalMs, json: flags.json ?? false, terminal };
      end(await module.watch((watchLogger) => makeClient(flags, watchLogger), watched, options));
    },
  );

  const importing = program
    .command('import <file>')
    .description('create a tracker for each row of a CSV file, or of a pipe: -')
    .option('--failures <file>', 'where rows go that fail (default: beside the file)')
    .option('--overwrite', 'replace a file of failures that exists')
    .option('--delimiter <character>', 'between two fields, or tab (default: detected)')
    .option('--encoding <name>', 'latin1, utf-16le, ...', 'utf-8')
    .addHelpText(
      'after',
      `
The first line names the columns: trackingNumber, and any of
${wrapNames(FIELDS.filter((name) => name !== 'trackingNumber'))}.
tracking_number and "Tracking number" are the same name. Other columns are not
sent, and named.`,
    );
  addServiceFlags(importing).action(async (file: string, flags: ServiceFlags & ImportFlags) => {
    const module = await import('./import.ts');
    const { failures, overwrite, json = false } = flags;
    const delimiter = flags.delimiter === undefined ? undefined : parseDelimiter(flags.delimiter);
    const encoding = parseEncoding(flags.encoding);
    const options = { failures, overwrite, delimiter, encoding, json, terminal };
    end(await module.importFile(makeClient(flags, logger), file, options));
  });

  const list = program
    .command('list')
    .description('list the trackers of the account, newest first')
    .option('--tracked', 'only those that are still tracked')
    .option('--limit <number>', 'how many at most', '100');
  addServiceFlags(list).action(async (flags: ServiceFlags & { tracked?: boolean; limit: string }) => {
    const module = await import('./list.ts');
    const limit = wholeNumber('limit', flags.limit, MAX_LISTED);
    const { tracked = false, json = false } = flags;
    end(await module.list(makeClient(flags, logger), { limit, tracked, json, terminal }));
  });

  const addNamed = (name: 'stop' | 'resend', description: string) => {
    const command = program
      .command(`${name} <trackers...>`)
      .description(description)
      .addOption(new Option('--by <name>', 'what they are named by').choices(NAMES).default('id'));
    addServiceFlags(command).action(
      async (names: string[], flags: ServiceFlags & Pick<NamedTrackersOptions, 'by'>) => {
        const { by, json = false } = flags;
        const options = { by, json, terminal };
        const client = makeClient(flags, logger);
        if (name === 'stop') end(await (await import('./stop.ts')).stop(client, names, options));
        else end(await (await import('./resend.ts')).resend(client, names, options));
      },
    );
  };
  addNamed('stop', 'stop tracking shipments, for good');
  addNamed('resend', 'send the webhooks of trackers again');

  const couriers = program
    .command('couriers [text]')
    .description('list couriers: all, or those with a text in code, name or country');
  addServiceFlags(couriers).action(async (text: string | undefined, flags: ServiceFlags) => {
    const module = await import('./couriers.ts');
    const options = { json: flags.json ?? false, terminal };
    end(await module.couriers(makeClient(flags, logger), text ?? '', options));
  });

  program
    .command('listen')
    .description('receive webhooks and print them')
    .option('-p, --port <number>', 'port; 0 for any free one', '3000')
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .addOption(
      new Option('--secret <secret>', 'of the webhooks, better set by').env('TRACKING_WEBHOOK_SECRET'),
    )
    .option('--json', 'print JSON, one value a line')
    .action(async (flags: { port: string; host: string; secret?: string; json?: boolean }) => {
      const module = await import('./listen.ts');
      const secret = flags.secret ? secretOf('secret', flags.secret) : undefined;
      const [host, port] = [hostOf(flags.host), wholeNumber('port', flags.port, 65_535)];
      end(await module.listen({ host, port, secret, json: flags.json ?? false, terminal }));
    });

  program
    .command('fake')
    .description('serve a fake service, to try things and to test against')
    .option('-p, --port <number>', 'port; 0 for any free one', '4010')
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--play <name>', PLAY_CHOICES.join(', '), collect)
    .option('--speed <number>', 'times faster than real time', '1')
    .option('--fail <what>', '[ENDPOINT:]STATUS-OR-KIND[:TIMES], e.g. all:500:3', collect)
    .option('--latency <ms>', 'wait before each response', '0')
    .option('--limit <n>', '[ENDPOINT:]NUMBER a second, or off', collect)
    .option('--quota <n>', 'trackers that the plan may create')
    .option('--per-call', 'give the account the per-call plan, too')
    .option('--webhook-url <url>', 'where to push webhooks')
    .addOption(new Option('--webhook-secret <s>', 'sent with them').env('TRACKING_WEBHOOK_SECRET'))
    .option('--duplicates <n>', 'send each push so many times more', '0')
    .option('--shuffle', 'send what waits in another order')
    .option('--api-key <key>', 'accept this key alone; up to 20 times', collect)
    .option('--seed <text>', 'decides every id', '1')
    .addHelpText(
      'after',
      `\nA play of days takes 77 seconds with --speed 3600; several plays take turns.\nKinds of failures: ${FAILURE_KINDS.join(', ')}.`,
    )
    .action(async (flags: FakeFlags) => {
      const { serveFake } = await import('./fake.ts');
      end(await serveFake(flags, terminal));
    });

  for (const command of [program, ...program.commands])
    command
      .exitOverride()
      .helpOption('-h, --help', 'print this')
      .configureOutput({
        writeOut: (text) => terminal.stdout.write(text),
        writeErr: (text) => terminal.stderr.write(text),
        outputError: () => {},
      });
  return program;
}

/**
 * Runs the command.
 *
 * @param args - what follows the name of the command
 * @param terminal - where to print, and what ends it
 * @returns the exit code; what goes wrong is one line on stderr
 * @throws only what is a mistake of this package
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.done;
  const program = createProgram(terminal, (code) => {
    exitCode = code;
  });
  const fail = (message: string, code: number) => {
    if (message !== '') terminal.stderr.write(`tracking-client: ${plain(message)}\n`);
    return code;
  };
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done;
      // Help was printed already, for a command line that says nothing.
      if (error.code === 'commander.help') return EXIT.usage;
      return fail(`${error.message.replace(/^error: /, '')}; --help tells all`, EXIT.usage);
    }
    const { aborted, reason } = terminal.signal;
    if (aborted && reason instanceof OutputError) return fail(reason.message, reason.exitCode);
    if (aborted) return EXIT.interrupted;
    if (error instanceof CommandError) return fail(error.message, error.exitCode);
    const isUsage = error instanceof ConfigurationError || error instanceof RequestValidationError;
    if (error instanceof TrackingError) return fail(error.message, isUsage ? EXIT.usage : EXIT.failed);
    throw error;
  }
}

import { Command, CommanderError, Option } from 'commander';
import {
  ConfigurationError,
  type Logger,
  RequestValidationError,
  type TrackerInput,
  TrackingClient,
  TrackingError,
  VERSION,
} from 'tracking-client';
import {
  FAILURE_KINDS,
  type FakeFlags,
  hostOf,
  PLAY_CHOICES,
  secretOf,
  wholeNumber,
} from './fake-options.ts';
import { CommandError, EXIT, loggerTo, plain, type Terminal, warn } from './terminal.ts';

/** The bin that is the subcommand `fake` alone. */
export const FAKE_BIN = 'tracking-client-fake';

interface ServiceFlags {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly json?: boolean;
}

interface HintFlags {
  readonly courier?: readonly string[];
  readonly destination?: string;
  readonly postCode?: string;
}

const collect = (value: string, earlier: readonly string[] = []) => [...earlier, value];

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };

function durationMsOf(flag: string, text: string): number {
  const [, count = '', unit = 's'] = /^(\d{1,5})([smh])?$/.exec(text) ?? [];
  const durationMs = Number(count) * (UNITS_MS[unit] ?? 0);
  if (durationMs >= 1000 && durationMs <= 24 * 3_600_000) return durationMs;
  throw new CommandError(
    `Expected \`--${flag}\` to be from 1s to 24h, as in 30s, 15m or 2h, got ${JSON.stringify(text)}`,
  );
}

/** The client of the flags and the environment; without a key one sentence says what to set. */
function clientOf({ baseUrl, apiKey }: ServiceFlags, logger: Logger): TrackingClient {
  const ways = 'To try it without any: `npx tracking-client fake` in another terminal';
  if (!baseUrl)
    throw new CommandError(`Set TRACKING_BASE_URL to the service's URL, or give --base-url. ${ways}`);
  if (!apiKey) throw new CommandError(`Set TRACKING_API_KEY to your API key. ${ways}`);
  return new TrackingClient({ baseUrl, apiKey, logger });
}

function inputOf(trackingNumber: string, { courier, destination, postCode }: HintFlags): TrackerInput {
  return {
    trackingNumber,
    ...(courier !== undefined && { courierCode: [...courier] }),
    ...(destination !== undefined && { destinationCountryCode: destination }),
    ...(postCode !== undefined && { destinationPostCode: postCode }),
  };
}

function addService(command: Command): Command {
  return command
    .option('--json', 'print JSON, one value a line')
    .addOption(new Option('--base-url <url>', 'where the service is').env('TRACKING_BASE_URL'))
    .addOption(new Option('--api-key <key>', 'better set by').env('TRACKING_API_KEY'));
}

function addHints(command: Command): Command {
  return command
    .option('--courier <code>', 'courier code; up to three times', collect)
    .option('--destination <country>', 'country code, which some couriers need')
    .option('--post-code <code>', 'of the destination, which some couriers need');
}

/** The command `fake`, by either of its names. */
function fakeCommand(name: string, terminal: Terminal, end: (exitCode: number) => void): Command {
  return new Command(name)
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
}

/** The whole command; each part is loaded when it is asked for. */
export function createProgram(name: string, terminal: Terminal, end: (exitCode: number) => void): Command {
  const settings = (command: Command) =>
    command
      .exitOverride()
      .helpOption('-h, --help', 'print this')
      .configureOutput({
        writeOut: (text) => terminal.stdout.write(text),
        writeErr: (text) => terminal.stderr.write(text),
        outputError: () => {},
      });
  if (name === FAKE_BIN)
    return settings(fakeCommand(name, terminal, end).version(VERSION, '-v, --version', 'print the version'));

  const stderrLogger = loggerTo((line) => warn(terminal, line));
  const program = settings(new Command(name))
    .description('track shipments from a terminal')
    .version(VERSION, '-v, --version', 'print the version')
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Set TRACKING_BASE_URL and TRACKING_API_KEY; without a key, run "fake" to try it.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing known yet, 130 Ctrl-C.`,
    );

  const track = program.command('track <number>').description('print the timeline of one shipment');
  addService(addHints(track)).action(async (number: string, flags: ServiceFlags & HintFlags) => {
    const module = await import('./track.ts');
    const options = { json: flags.json ?? false, terminal };
    end(await module.track(clientOf(flags, stderrLogger), inputOf(number, flags), options));
  });

  const watch = program
    .command('watch [numbers...]')
    .description('show shipments until none is tracked any more')
    .option('--all', 'all trackers of the account that are still tracked')
    .option('--interval <time>', 'time between two polls: 30s, 15m, 2h', '15m');
  addService(addHints(watch)).action(
    async (numbers: string[], flags: ServiceFlags & HintFlags & { all?: boolean; interval: string }) => {
      if (numbers.length > 0 === (flags.all ?? false))
        throw new CommandError('Expected either tracking numbers or `--all`');
      const watched = flags.all ? 'all' : { inputs: numbers.map((number) => inputOf(number, flags)) };
      const intervalMs = durationMsOf('interval', flags.interval);
      const module = await import('./watch.ts');
      const options = { intervalMs, json: flags.json ?? false, terminal };
      end(await module.watch((logger) => clientOf(flags, logger), watched, options));
    },
  );

  const importing = program
    .command('import <file>')
    .description('create a tracker for each row of a CSV file')
    .option('--failures <file>', 'where the rows go that fail (default: NAME.failures.csv)')
    .addHelpText(
      'after',
      `
The first line names the columns: trackingNumber, and any of clientTrackerId,
courierCode, originCountryCode, destinationCountryCode, destinationPostCode,
shippingDate, shipmentReference, orderNumber, title, recipientEmail and
recipientName. tracking_number and "Tracking number" are the same name; other
columns are left out.`,
    );
  addService(importing).action(async (file: string, flags: ServiceFlags & { failures?: string }) => {
    const module = await import('./import.ts');
    const options = { failures: flags.failures, json: flags.json ?? false, terminal };
    end(await module.importFile(clientOf(flags, stderrLogger), file, options));
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

  program.addCommand(fakeCommand('fake', terminal, end));
  for (const command of program.commands) settings(command);
  return program;
}

/**
 * Runs the command.
 *
 * @param name - by which name it was called, `tracking-client` or `tracking-client-fake`
 * @param args - what follows the name
 * @param terminal - where to print, and what ends it
 * @returns the exit code; what goes wrong is one line on stderr
 * @throws only what is a mistake of this package
 */
export async function run(name: string, args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.done;
  const program = createProgram(name, terminal, (code) => {
    exitCode = code;
  });
  const fail = (message: string, code: number) => {
    terminal.stderr.write(`${name}: ${plain(message)}\n`);
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
    if (terminal.signal.aborted) return EXIT.interrupted;
    if (error instanceof CommandError) return fail(error.message, error.exitCode);
    const isUsage = error instanceof ConfigurationError || error instanceof RequestValidationError;
    if (error instanceof TrackingError) return fail(error.message, isUsage ? EXIT.usage : EXIT.failed);
    throw error;
  }
}

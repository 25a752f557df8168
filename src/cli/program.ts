import { Command, CommanderError, Option } from 'commander';
import {
  ConfigurationError,
  RequestValidationError,
  type TrackerInput,
  TrackingError,
  VERSION,
} from 'tracking-client';
import { FIELDS } from './columns.ts';
import { addFakeFlags, type FakeFlags } from './fake-flags.ts';
import {
  addListenFlags,
  parseDelimiter,
  parseEncoding,
  parseInterval,
  secretOption,
  several,
  wholeNumber,
} from './flags.ts';
import type { ImportOptions } from './import.ts';
import type { ListOptions } from './list.ts';
import type { ListenOptions } from './listen.ts';
import { NAMES, type NamedTrackersOptions } from './named-trackers.ts';
import { addServiceFlags, makeClient, makeLogger, type ServiceFlags } from './service.ts';
import { CommandError, EXIT, OutputError, type Terminal, warn } from './terminal.ts';
import { plain } from './text.ts';

interface HintFlags {
  readonly courier?: readonly string[];
  readonly destination?: string;
  readonly postCode?: string;
}

type ByFlag = Pick<NamedTrackersOptions, 'by'>;

const DEFAULT_INTERVAL_MS = 15 * 60_000;
/** More trackers than these are no list for a person; the client reads any number. */
const MAX_LISTED = 100_000;

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
    .option('--courier <code>', 'courier code; up to three times', several(String))
    .option('--destination <country>', 'country code, which some couriers need')
    .option('--post-code <code>', 'of the destination, which some couriers need');
}

function addBy(command: Command): Command {
  return command.addOption(new Option('--by <name>', 'what they are named by').choices(NAMES).default('id'));
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
    end(await module.track(makeClient(flags, logger), buildInput(number, flags), { ...flags, terminal }));
  });

  const watch = program
    .command('watch [numbers...]')
    .description('show shipments until none is tracked any more')
    .option('--all', 'all trackers of the account that are still tracked')
    .option('--interval <time>', 'time between two polls: 30s, 2h (default: 15m)', parseInterval);
  addServiceFlags(addHints(watch)).action(
    async (numbers: string[], flags: ServiceFlags & HintFlags & { all?: boolean; interval?: number }) => {
      if (numbers.length > 0 === (flags.all ?? false))
        throw new CommandError('Expected either tracking numbers or `--all`');
      const watched = flags.all ? 'all' : { inputs: numbers.map((number) => buildInput(number, flags)) };
      const options = { ...flags, intervalMs: flags.interval ?? DEFAULT_INTERVAL_MS, terminal };
      const module = await import('./watch.ts');
      end(await module.watch((watchLogger) => makeClient(flags, watchLogger), watched, options));
    },
  );

  const importing = program
    .command('import <file>')
    .description('create trackers from a CSV file; - is a pipe')
    .option('--failures <file>', 'where rows go that fail (default: beside the file)')
    .option('--overwrite', 'replace a file of failures that exists')
    .option('--delimiter <char>', 'between two fields, or tab (default: detected)', parseDelimiter)
    .option('--encoding <name>', 'such as latin1 (default: utf-8)', parseEncoding)
    .addHelpText(
      'after',
      `
The first line names the columns, the first of which has to be there:
${FIELDS.join(', ').replace(/(.{1,78}) /g, '$1\n')}.
"Tracking number" is the same name. Other columns are not sent.`,
    );
  addServiceFlags(importing).action(
    async (file: string, flags: ServiceFlags & Omit<ImportOptions, 'terminal'>) => {
      const { importFile } = await import('./import.ts');
      end(await importFile(makeClient(flags, logger), file, { ...flags, terminal }));
    },
  );

  const list = program
    .command('list')
    .description('list the trackers of the account, newest first')
    .option('--tracked', 'only those that are still tracked')
    .option('--limit <number>', 'how many at most (default: 100)', wholeNumber('limit', MAX_LISTED));
  addServiceFlags(list).action(async (flags: ServiceFlags & Omit<ListOptions, 'terminal'>) => {
    const module = await import('./list.ts');
    end(await module.list(makeClient(flags, logger), { ...flags, terminal }));
  });

  const stop = program.command('stop <trackers...>').description('stop tracking shipments, for good');
  addServiceFlags(addBy(stop)).action(async (names: string[], flags: ServiceFlags & ByFlag) => {
    const module = await import('./stop.ts');
    end(await module.stop(makeClient(flags, logger), names, { ...flags, terminal }));
  });

  const resend = program.command('resend <trackers...>').description('have webhooks sent again');
  addServiceFlags(addBy(resend)).action(async (names: string[], flags: ServiceFlags & ByFlag) => {
    const module = await import('./resend.ts');
    end(await module.resend(makeClient(flags, logger), names, { ...flags, terminal }));
  });

  const couriers = program
    .command('couriers [text]')
    .description('list couriers, or those with a text in them');
  addServiceFlags(couriers).action(async (text: string | undefined, flags: ServiceFlags) => {
    const module = await import('./couriers.ts');
    end(await module.couriers(makeClient(flags, logger), text ?? '', { ...flags, terminal }));
  });

  const listening = program.command('listen').description('receive webhooks and print them');
  addListenFlags(listening, 3000)
    .addOption(secretOption('--secret <secret>', 'of the webhooks, better set by'))
    .option('--json', 'print JSON, one value a line')
    .action(async (flags: Omit<ListenOptions, 'terminal'>) => {
      const { listen } = await import('./listen.ts');
      end(await listen({ ...flags, terminal }));
    });

  const fake = program.command('fake').description('serve a fake service, to try all of this');
  addFakeFlags(fake).action(async (flags: FakeFlags) => {
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

/** Runs the command, and returns the exit code; what goes wrong is one line on stderr. */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.done;
  const program = createProgram(terminal, (code) => {
    exitCode = code;
  });
  const fail = (message: string, code: number) => {
    terminal.stderr.write(`tracking-client: ${plain(message)}\n`);
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
    if (aborted) return reason instanceof OutputError ? reason.exitCode : EXIT.interrupted;
    if (error instanceof CommandError) return fail(error.message, error.exitCode);
    const isUsage = error instanceof ConfigurationError || error instanceof RequestValidationError;
    if (error instanceof TrackingError) return fail(error.message, isUsage ? EXIT.usage : EXIT.failed);
    throw error;
  }
}

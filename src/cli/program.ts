import { Command, CommanderError, Help } from 'commander';
import { ConfigurationError, RequestValidationError, TrackingError, VERSION } from 'tracking-client';
import { addFake } from './fake.ts';
import { createLogger } from './flags.ts';
import { addImport } from './import.ts';
import { addCouriers, addList } from './list.ts';
import { addListen } from './listen.ts';
import { addResend, addStop } from './named-trackers.ts';
import { CommandError, EXIT, OutputError, type Terminal } from './terminal.ts';
import { plain } from './text.ts';
import { addShow, addTrack } from './track.ts';
import { addWatch } from './watch.ts';

const ADDERS = [
  addTrack,
  addShow,
  addWatch,
  addImport,
  addList,
  addStop,
  addResend,
  addCouriers,
  addListen,
  addFake,
];

export function createProgram(terminal: Terminal, end: (exitCode: number) => void): Command {
  const program = new Command('tracking-client')
    .description('Track shipments from a terminal')
    .version(VERSION, '-v, --version', 'print the version')
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Set TRACKING_BASE_URL and TRACKING_API_KEY; to try without a key, run "fake".
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no results, 130 Ctrl-C.`,
    )
    .configureHelp({
      subcommandTerm: (command) => new Help().subcommandTerm(command).replace(' [options]', ''),
    })
    // Each subcommand inherits these settings.
    .exitOverride()
    .helpOption('-h, --help', 'print this help')
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: () => {},
    });
  const logger = createLogger((line) => terminal.warn(line));
  for (const add of ADDERS) add(program, { terminal, logger, end });
  return program;
}

export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const fail = (message: string, code: number) => {
    terminal.stderr.write(`tracking-client: ${message.split('\n').map(plain).join('\n  ')}\n`);
    return code;
  };
  let exitCode: number = EXIT.done;
  const end = (code: number) => {
    exitCode = code;
  };
  try {
    await createProgram(terminal, end).parseAsync([...args], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done;
      // For an empty command line, commander has printed the help already.
      if (error.code === 'commander.help') return EXIT.usage;
      const message = plain(error.message.replace(/^error: /, '').replace(/\.$/, ''));
      return fail(`${message}; see --help`, EXIT.usage);
    }
    const { aborted, reason } = terminal.signal;
    if (aborted) return reason instanceof OutputError ? reason.exitCode : EXIT.interrupted;
    if (error instanceof CommandError) return fail(error.message, error.exitCode);
    const isUsage = error instanceof ConfigurationError || error instanceof RequestValidationError;
    if (error instanceof TrackingError) return fail(plain(error.message), isUsage ? EXIT.usage : EXIT.failed);
    throw error;
  }
}

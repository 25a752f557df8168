import { Command, CommanderError, Help } from 'commander';
import { ConfigurationError, RequestValidationError, TrackingError, VERSION } from 'tracking-client';
import { addDoctor } from './doctor.ts';
import { addFake } from './fake.ts';
import { addHelpLines, MAX_HELP_WIDTH } from './flags.ts';
import { addImport } from './import.ts';
import { addListen } from './listen.ts';
import { CommandError, EXIT, formatReason, OutputError, plain, type Terminal } from './terminal.ts';
import { addCouriers, addHistory, addList, addResend, addShow, addStop, addTrack } from './trackers.ts';
import { addWatch } from './watch.ts';

const ADDERS = [
  addTrack,
  addShow,
  addWatch,
  addImport,
  addList,
  addStop,
  addResend,
  addHistory,
  addCouriers,
  addDoctor,
  addListen,
  addFake,
];

export function createProgram(terminal: Terminal): Command {
  const program = new Command('tracking-client')
    .description('Track shipments from a terminal')
    .version(VERSION, '-v, --version', 'print the version')
    .helpCommand(false)
    .configureHelp({
      minWidthToWrap: 1,
      subcommandTerm: (command) => new Help().subcommandTerm(command).replace(' [options]', ''),
    })
    // Each subcommand inherits these settings.
    .exitOverride()
    .helpOption('-h, --help', 'print this help')
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => Math.min(terminal.width, MAX_HELP_WIDTH),
    });
  addHelpLines(
    program,
    terminal,
    'Set TRACKING_BASE_URL and TRACKING_API_KEY; to try without a key, run "fake".',
    'Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no results, 130 Ctrl-C.',
    'Ctrl-C is the normal end of "listen" and "fake", which then exit with 0.',
  );
  for (const add of ADDERS) add(program, terminal);
  return program;
}

/**
 * Shows a mistyped option without its value, which may be a secret, as in `--apikey=KEY`. The same mistake can be a command:
 * `TRACKING_API_KEY=KEY list`. A command that is similar to no other may be a secret itself, as in `--json KEY`.
 */
function hideValue(message: string): string {
  if (/^unknown command '[^'=\n]*'$/.test(message)) return 'unknown command';
  const [, start, rest = ''] =
    /^(unknown option '(?:--(?:[a-z_-]+|[A-Z_-]+)|-[a-zA-Z]?)|unknown command '[^=']*)(.*)$/s.exec(message) ??
    [];
  if (start === undefined || /^'(?:\n\(Did you mean [a-z-]+\?\))?$/.test(rest)) return message;
  return `${start}' with a value`;
}

export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const fail = (message: string, code: number) => {
    const [first = '', ...others] = message.split('\n').map(plain);
    terminal.printError(`tracking-client: ${first}`);
    for (const line of others) terminal.printError(line, '  ');
    return code;
  };
  try {
    await createProgram(terminal).parseAsync([...args], { from: 'user' });
    return terminal.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done;
      // For an empty command line, commander has printed the help already.
      if (error.code === 'commander.help') return EXIT.usage;
      const message = hideValue(error.message.replace(/^error: /, '').replace(/\.$/, ''));
      return fail(`${plain(message)}; see --help`, EXIT.usage);
    }
    const { aborted, reason } = terminal.signal;
    if (aborted) return reason instanceof OutputError ? reason.exitCode : EXIT.interrupted;
    if (error instanceof CommandError) return fail(error.message, error.exitCode);
    if (error instanceof RequestValidationError) return fail(plain(formatReason(error)), EXIT.usage);
    if (error instanceof TrackingError)
      return fail(plain(error.message), error instanceof ConfigurationError ? EXIT.usage : EXIT.failed);
    throw error;
  }
}

#!/usr/bin/env node
import { VERSION } from '../../config/config.ts';
import { type Flags, HELP, parseFlags, USAGE, UsageError } from './flags.ts';
import { greeting, paintFor } from './output.ts';
import { runFake } from './run.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const { stdout, stderr } = process;
const screen = {
  print: (line: string) => void stdout.write(`${line}\n`),
  paint: paintFor(stdout.isTTY === true, process.env),
};

function leave(message: string, exitCode: number): never {
  stderr.write(`tracking-client-fake: ${message}\n`);
  process.exit(exitCode);
}

function readFlags(): Flags | 'help' | 'version' {
  try {
    return parseFlags(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return leave(`${error.message}. Usage: ${USAGE} (--help tells all)`, EXIT_USAGE);
  }
}

function whyNotListening(error: unknown, { host, port }: Flags): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return `Port ${port} of ${host} is in use; choose another with --port`;
  if (code === 'EACCES') return `Port ${port} of ${host} is not allowed; choose another with --port`;
  return `Could not listen on port ${port} of ${host}: ${error instanceof Error ? error.message : error}`;
}

async function serve(flags: Flags): Promise<void> {
  const running = await runFake(flags, screen).catch((error: unknown) =>
    leave(whyNotListening(error, flags), EXIT_FAILED),
  );
  screen.print(greeting(running.url, flags, screen.paint));
  const stop = () => {
    // A second Ctrl-C does not wait.
    process.once('SIGINT', () => process.exit(0));
    void running.stop().then(() => {
      screen.print('Stopped.');
      process.exit(0);
    });
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

// A reader that has seen enough, as `head`, is no failure.
stdout.on('error', () => process.exit(0));

const flags = readFlags();
if (flags === 'help') screen.print(HELP);
else if (flags === 'version') screen.print(VERSION);
else void serve(flags);

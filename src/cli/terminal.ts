import type { WriteStream } from 'node:tty';
import { stripVTControlCharacters } from 'node:util';
import pc from 'picocolors';
import type { Logger, TrackingEvent } from 'tracking-client';

/** Functions that colour text, or leave it as it is. */
export type Colours = ReturnType<typeof pc.createColors>;

/** Where a command prints, and what ends it. */
export interface Terminal {
  /** The result, which a pipe gets. */
  readonly stdout: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'rows' | 'columns'>>;
  /** Progress, warnings and failures. */
  readonly stderr: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY'>>;
  readonly colours: Colours;
  /** Aborts at Ctrl-C, and when the process is told to end. */
  readonly signal: AbortSignal;
}

/** What a command ends with, for scripts to branch on. */
export const EXIT = {
  done: 0,
  /** The service or the network said no, or some of several items failed. */
  failed: 1,
  /** An argument, a file or the environment is not what it should be: nothing was sent. */
  usage: 2,
  /** Nothing is known of the shipment yet. */
  noResults: 3,
  /** Ended by Ctrl-C before it was done, as shells count it. */
  interrupted: 130,
} as const;

/** Ends a command with one line on stderr. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.usage) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Colours for a terminal, unless `NO_COLOR` holds anything (no-color.org) or the terminal is dumb. */
export function coloursFor(isTerminal: boolean, environment: NodeJS.ProcessEnv): Colours {
  const isOff = (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  return pc.createColors(isTerminal && !isOff);
}

export function print({ stdout }: Terminal, line: string): void {
  stdout.write(`${line}\n`);
}

export function printJson(terminal: Terminal, value: unknown): void {
  print(terminal, JSON.stringify(value));
}

export function warn({ stderr, colours }: Terminal, line: string): void {
  stderr.write(`${colours.yellow(line)}\n`);
}

/** A logger of a client: its warnings as lines. */
export function loggerTo(show: (line: string) => void): Logger {
  const log: Logger['warn'] = (message, fields) => {
    const reason = fields?.['reason'] === undefined ? '' : `: ${fields['reason']}`;
    show(plain(message.replace(/^\[tracking-client\] /, '') + reason));
  };
  return { debug: log, info: log, warn: log, error: log };
}

/** Text of others without what a terminal would obey, on one line. */
export function plain(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
}

/** A milestone in the colour of how well it goes. */
export function milestoneText(milestone: string | null | undefined, colours: Colours): string {
  const text = plain(milestone ?? 'unknown');
  if (text === 'delivered') return colours.green(text);
  if (text === 'exception') return colours.red(text);
  return text === 'failed_attempt' ? colours.yellow(text) : colours.cyan(text);
}

/** What happened and where, in the courier's own words. */
export function eventText(event: Omit<TrackingEvent, 'eventId'>, colours: Colours): string {
  const { status, statusCode, statusMilestone, location } = event;
  const what = plain(status ?? statusCode ?? statusMilestone ?? 'unknown');
  return location ? `${what} ${colours.dim(`· ${plain(location)}`)}` : what;
}

/** An event as a line of a timeline; its time as the courier wrote it. */
export function timelineLine(event: TrackingEvent, colours: Colours): string {
  const { statusMilestone, occurrenceDatetime } = event;
  const mark = statusMilestone === 'delivered' ? colours.green('●') : colours.cyan('○');
  const when = colours.dim(plain(occurrenceDatetime ?? 'no time').padEnd(25));
  return `  ${statusMilestone === 'exception' ? colours.red('●') : mark} ${when} ${eventText(event, colours)}`;
}

/** Resolves when the command is told to end. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Why a port could not be listened on, for a person. */
export function whyNotListening(error: unknown, host: string, port: number): CommandError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const advice = 'choose another with --port';
  if (code === 'EADDRINUSE')
    return new CommandError(`Port ${port} of ${host} is in use; ${advice}`, EXIT.failed);
  if (code === 'EACCES')
    return new CommandError(`Port ${port} of ${host} is not allowed; ${advice}`, EXIT.failed);
  const reason = error instanceof Error ? error.message : String(error);
  return new CommandError(`Could not listen on port ${port} of ${host}: ${reason}`, EXIT.failed);
}

import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import pc from 'picocolors';

/** Functions that colour text, or leave it as it is. */
export type Colours = ReturnType<typeof pc.createColors>;

/** Where a command prints, and what ends it. */
export interface Terminal {
  /** The result, which a pipe gets. */
  readonly stdout: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'rows' | 'columns'>>;
  /** Progress, warnings and failures. */
  readonly stderr: NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY'>>;
  readonly colours: Colours;
  /** Aborts at Ctrl-C, when the process is told to end, and with an `OutputError` when nothing more can be printed. */
  readonly signal: AbortSignal;
}

/** Exit codes, for scripts to branch on. */
export const EXIT = {
  done: 0,
  /** The service or the network said no, or some of several items failed. */
  failed: 1,
  /** An argument, a file or the environment is not what it should be: nothing was sent. */
  usage: 2,
  /** Nothing was found. */
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

/** Nothing more can be printed. A reader that has seen enough, as `head`, is no failure and worth no line. */
export class OutputError extends CommandError {
  constructor(error: NodeJS.ErrnoException) {
    const isEnough = error.code === 'EPIPE';
    super(isEnough ? '' : `Could not print: ${formatReason(error)}`, isEnough ? EXIT.done : EXIT.failed);
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

/** Prints one line of JSON, without characters that a terminal obeys or that other readers take for the end of the line. */
export function printJson(terminal: Terminal, value: unknown): void {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const json = JSON.stringify(value);
  print(terminal, json.replace(/[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, escaped));
}

export function warn({ stderr, colours }: Terminal, line: string): void {
  stderr.write(`${colours.yellow(line)}\n`);
}

/** The reason of an error for a person: `permission denied (EACCES)` of the system, or the message. */
export function formatReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [, code, reason] = /\b(E[A-Z0-9]+): ([^,]+?)(?: [\d.:]+)?(?:,|$)/.exec(error.message) ?? [];
  return code === undefined ? error.message : `${reason} (${code})`;
}

/** Resolves when the command is told to end. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

/** Explains why a port could not be listened on. */
export function explainListenFailure(error: unknown, host: string, port: number): CommandError {
  const reason = `Could not listen on port ${port} of ${host}: ${formatReason(error)}`;
  return new CommandError(`${reason}; choose another with --port`, EXIT.failed);
}

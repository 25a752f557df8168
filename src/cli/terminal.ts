import { once } from 'node:events';
import type { WriteStream } from 'node:tty';
import type pc from 'picocolors';

export type Colours = ReturnType<typeof pc.createColors>;

type OutputStream = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY'>>;

export class Terminal {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly colours: Colours;
  /** Aborts on Ctrl-C and SIGTERM, and with an `OutputError` when the output is closed. */
  readonly signal: AbortSignal;
  #status = '';

  constructor(stdout: OutputStream, stderr: OutputStream, colours: Colours, signal: AbortSignal) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.colours = colours;
    this.signal = signal;
  }

  print(line: string): void {
    this.#write(this.stdout, `${line}\n`);
  }

  /** Shows a line that stays below all others. Nothing is shown if the output is a pipe or a file. */
  showStatus(line: string): void {
    // Without line wrap, the terminal cuts the line at its edge.
    if (this.stdout.isTTY) this.#write(this.stdout, '', `\u001b[?7l${line}\u001b[?7h\n`);
  }

  #write(stream: OutputStream, text: string, status = this.#status): void {
    // Ctrl-C may have printed `^C`, so first go to column 1; then go up to the status line and clear it.
    if (this.#status !== '') this.stdout.write('\r\u001b[1A\u001b[0J');
    stream.write(text);
    if (status !== '') this.stdout.write(status);
    this.#status = status;
  }

  /** Prints one line of JSON; escapes characters that a terminal obeys or that other readers take for the end of a line. */
  printJson(value: unknown): void {
    const toEscape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
    const json = JSON.stringify(value);
    this.print(json.replace(/[\u007f-\u009f\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, toEscape));
  }

  warn(line: string): void {
    this.#write(this.stderr, `${this.colours.yellow(line)}\n`);
  }
}

export const EXIT = {
  done: 0,
  /** The service refused or failed, the network failed, or some of several items failed. */
  failed: 1,
  /** An argument, a file or the environment is wrong, and nothing was sent. */
  usage: 2,
  noResults: 3,
  /** Ctrl-C ended the command before it was done; shells use the same code. */
  interrupted: 130,
} as const;

export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.usage) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Ends the command when nothing more can be printed. A reader that closes early, such as `head`, is not a failure. */
export class OutputError extends CommandError {
  constructor(error: NodeJS.ErrnoException) {
    const hasLeft = error.code === 'EPIPE';
    super(hasLeft ? '' : `Could not print: ${formatReason(error)}`, hasLeft ? EXIT.done : EXIT.failed);
  }
}

/** Formats the reason of an error for a person: `permission denied (EACCES)` for a system error, else the message. */
export function formatReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const [, code, reason] = /\b(E[A-Z0-9]+): ([^,]+?)(?: [\d.:]+)?(?:,|$)/.exec(error.message) ?? [];
  return code === undefined ? error.message : `${reason} (${code})`;
}

export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

export function explainListenFailure(error: unknown, host: string, port: number): CommandError {
  const reason = `Could not listen on port ${port} of ${host}: ${formatReason(error)}`;
  return new CommandError(`${reason}; choose another --port or --host`, EXIT.failed);
}

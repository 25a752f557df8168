import { PassThrough } from 'node:stream';
import { type Colours, coloursFor, type Terminal } from '../../src/cli/terminal.ts';

/** A terminal that remembers what was printed; `output` is what is on it so far. */
export interface RecordedTerminal {
  readonly terminal: Terminal;
  readonly output: { readonly stdout: string; readonly stderr: string };
  /** What was printed on standard output, one item a line. */
  lines(): string[];
  /** Presses Ctrl-C. */
  interrupt(): void;
}

/** Makes a terminal for a command to print on; with `isLive` it is one of 100 columns and 12 rows. */
export function makeTerminal({ isLive = false } = {}): RecordedTerminal {
  const written = { stdout: '', stderr: '' };
  const controller = new AbortController();
  const stream = (name: keyof typeof written) => {
    const through = new PassThrough();
    through.on('data', (chunk: Buffer) => {
      written[name] += chunk.toString();
    });
    return Object.assign(through, isLive ? { isTTY: true as const, columns: 100, rows: 12 } : {});
  };
  const colours: Colours = coloursFor(false, {});
  return {
    terminal: { stdout: stream('stdout'), stderr: stream('stderr'), colours, signal: controller.signal },
    output: written,
    lines: () => written.stdout.split('\n').slice(0, -1),
    interrupt: () => controller.abort(new Error('Ctrl-C')),
  };
}

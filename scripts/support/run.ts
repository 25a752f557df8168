import { spawn } from 'node:child_process';
import { delimiter } from 'node:path';

const DEFAULT_TIMEOUT_MS = 300_000;

/** A command that ended, well or not. */
export interface Ran {
  readonly isGood: boolean;
  readonly output: string;
}

export interface RunOptions {
  /** Working folder. */
  readonly cwd: string;
  /** Searched for programs before all others, as for another Node. */
  readonly binFolder?: string | undefined;
  /** The command is ended after this time, and its output says so. Default 300,000. */
  readonly timeoutMs?: number | undefined;
}

/** Runs a command to its end; what it wrote to both streams comes back as one text. Never rejects. */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { cwd, binFolder, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const { PATH = '', ...rest } = process.env;
  const env = { ...rest, PATH: binFolder === undefined ? PATH : binFolder + delimiter + PATH };
  return new Promise((resolve) => {
    // Not the `timeout` of spawn: its timer outlives a program that cannot be started, and the whole script waits for it.
    const signal = AbortSignal.timeout(timeoutMs);
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], signal });
    let output = '';
    const collect = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', (error) => {
      const reason = signal.aborted ? `Ended, for it took longer than ${timeoutMs} ms` : String(error);
      resolve({ isGood: false, output: `${output}${reason}` });
    });
    child.on('close', (code) => resolve({ isGood: code === 0, output }));
  });
}

/** As `run`, for what all the rest depends on. */
export async function mustRun(
  command: string,
  args: readonly string[],
  options: RunOptions,
): Promise<string> {
  const { isGood, output } = await run(command, args, options);
  if (!isGood) throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
  return output;
}

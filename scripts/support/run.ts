import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';

/** A command that ended, well or not. */
export interface Ran {
  readonly isGood: boolean;
  /** What it wrote to both streams. */
  readonly output: string;
  /** The last line of its standard output. */
  readonly said: string;
}

export interface RunOptions {
  /** Working folder. */
  readonly cwd: string;
  /** Searched for programs before all others, as for another Node. */
  readonly binFolder?: string | undefined;
  /** The command is ended after this time. Default 300,000. */
  readonly timeoutMs?: number;
}

/** Runs a command to its end. Never rejects. */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { cwd, binFolder, timeoutMs: timeout = 300_000 } = options;
  const { PATH = '' } = process.env;
  const env = { ...process.env, PATH: binFolder === undefined ? PATH : binFolder + delimiter + PATH };
  return new Promise((resolve) => {
    execFile(command, args, { cwd, env, timeout, maxBuffer: Infinity }, (error, stdout, stderr) => {
      const reason = error?.killed ? `Ended, for it took longer than ${timeout} ms\n` : '';
      const output = `${stdout}${stderr}${reason}` || (error?.message ?? '');
      resolve({ isGood: error === null, output, said: stdout.trim().split('\n').at(-1) ?? '' });
    }).stdin?.end();
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

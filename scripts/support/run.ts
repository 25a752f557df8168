import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
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
  /** Whether all others that want the processor go first. Default false. */
  readonly isLowPriority?: boolean | undefined;
}

/** Runs a command to its end. Never rejects. */
export function run(command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { cwd, binFolder, timeoutMs: timeout = 300_000, isLowPriority = false } = options;
  const { PATH = '' } = process.env;
  const env = { ...process.env, PATH: binFolder === undefined ? PATH : binFolder + delimiter + PATH };
  return new Promise((resolve) => {
    const child = execFile(
      command,
      args,
      { cwd, env, timeout, maxBuffer: Infinity },
      (error, stdout, stderr) => {
        const reason = error?.killed ? `Ended, for it took longer than ${timeout} ms\n` : '';
        const output = `${stdout}${stderr}${reason}` || (error?.message ?? '');
        resolve({ isGood: error === null, output, said: stdout.trim().split('\n').at(-1) ?? '' });
      },
    );
    child.stdin?.end();
    // Inherited by the processes that it starts. Without an id it did not start, which it tells by itself.
    if (isLowPriority && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
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

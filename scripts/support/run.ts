import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { delimiter } from 'node:path';

/** Describes a command that ended, whether it failed or not. */
export interface Ran {
  readonly isGood: boolean;
  /** Everything it wrote to both streams. */
  readonly output: string;
  /** The last line of its standard output. */
  readonly said: string;
}

export interface RunOptions {
  /** Working folder. */
  readonly cwd: string;
  /** Folder that is searched for programs first, for example that of another Node. */
  readonly binFolder?: string | undefined;
  /** The command is ended after this time, in milliseconds. Default 300,000. */
  readonly timeoutMs?: number;
  /** If true, every other process goes first. Default false. */
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
        const reason = error?.killed ? `Ended because it took longer than ${timeout} ms\n` : '';
        const output = `${stdout}${stderr}${reason}` || (error?.message ?? '');
        resolve({ isGood: error === null, output, said: stdout.trim().split('\n').at(-1) ?? '' });
      },
    );
    child.stdin?.end();
    // Child processes inherit the priority. A command that did not start has no id, and its error says so.
    if (isLowPriority && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  });
}

/** Runs a command on which everything after it depends, and throws if it fails. */
export async function mustRun(
  command: string,
  args: readonly string[],
  options: RunOptions,
): Promise<string> {
  const { isGood, output } = await run(command, args, options);
  if (!isGood) throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
  return output;
}

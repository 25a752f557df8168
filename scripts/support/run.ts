import { execFile } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { delimiter } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/** Describes a command that has ended, successfully or not. */
export interface Ran {
  readonly isGood: boolean;
  /** Everything that the command wrote to standard output and standard error. */
  readonly output: string;
  /** The last line that the command wrote to standard output. */
  readonly lastLine: string;
}

export interface RunOptions {
  /** Working folder. */
  readonly cwd: string;
  /** Folder that is searched for programs first, for example that of another Node. */
  readonly binFolder?: string | undefined;
  /** The command is ended after this time, in milliseconds. Default 300,000. */
  readonly timeoutMs?: number;
  /** If true, the command gets the lowest priority. Default false. */
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
        // Some programs print colours although their output goes into a pipe.
        const output = stripVTControlCharacters(`${stdout}${stderr}${reason}`) || (error?.message ?? '');
        resolve({ isGood: error === null, output, lastLine: stdout.trim().split('\n').at(-1) ?? '' });
      },
    );
    child.stdin?.end();
    // Child processes inherit the priority. A command that did not start has no process id, and resolves as failed.
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

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { bundled } from '../../scripts/support/bundled.ts';

/** A program in a process of its own. */
export interface StartedProgram {
  readonly child: ChildProcess;
  /** What the program has printed. */
  readonly lines: readonly string[];
  send(signal: NodeJS.Signals): boolean;
  /** Sends a signal, and resolves to the exit code; null if the signal ended the process. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts a program of this repository, given by its absolute path, with more variables than those of this process. */
export async function startProgram(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd?: string,
): Promise<StartedProgram> {
  const options = { cwd, env: { ...process.env, ...env } };
  const child = spawn(process.execPath, [await bundled(program), ...args], options);
  const lines: string[] = [];
  for (const input of [child.stdout, child.stderr])
    createInterface({ input }).on('line', (line) => line !== '' && lines.push(line));
  const exitCode = new Promise<number | null>((resolve) => child.on('close', resolve));
  return {
    child,
    lines,
    send: (signal) => child.kill(signal),
    end(signal) {
      child.kill(signal);
      return exitCode;
    },
  };
}

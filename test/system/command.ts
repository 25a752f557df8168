import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { bundled } from '../../scripts/support/bundled.ts';
import { COMMANDS } from '../../scripts/support/entry-points.ts';

/** A process of the command. */
export interface StartedCommand {
  readonly child: ChildProcess;
  /** The output so far. */
  readonly output: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
}

/** Options of a start. */
export interface StartOptions {
  readonly cwd?: string;
  /** The text on standard input; a function gets the open pipe instead. Default: empty. */
  readonly stdin?: string | Buffer | ((pipe: Writable) => void);
}

/** The command of this package, bundled once from the sources. */
export interface BundledCommand extends AsyncDisposable {
  /** Starts the command without the variables of this process for the command and for colours. */
  start(args: readonly string[], environment?: NodeJS.ProcessEnv, options?: StartOptions): StartedCommand;
  /** Runs a line of bash in which `cli` is the command. A pipe fails if any part of it fails. */
  shell(line: string, environment?: NodeJS.ProcessEnv, options?: StartOptions): StartedCommand;
}

/** Bundles the command once, because compiling the sources for each process would take most of a test's time. */
export async function bundleCommand(): Promise<BundledCommand> {
  const file = await bundled(COMMANDS['tracking-client']);
  const children: ChildProcess[] = [];
  function spawned(
    program: string,
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    { cwd, stdin }: StartOptions = {},
  ): StartedCommand {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(TRACKING_|(NO|FORCE)_COLOR$)/.test(name),
    );
    const child = spawn(program, args, {
      cwd,
      env: { ...Object.fromEntries(inherited), ...environment },
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    children.push(child);
    const output = { stdout: '', stderr: '' };
    child.stdout?.on('data', (chunk: Buffer) => {
      output.stdout += chunk.toString();
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      output.stderr += chunk.toString();
    });
    if (typeof stdin === 'function') child.stdin && stdin(child.stdin);
    else child.stdin?.end(stdin);
    const exitCode = new Promise<number | null>((resolve) => child.on('close', resolve));
    return { child, output, exitCode };
  }
  return {
    start: (args, environment, options) => spawned(process.execPath, [file, ...args], environment, options),
    shell: (line, environment, options) => {
      const script = `set -o pipefail; cli() { "${process.execPath}" "${file}" "$@"; }; ${line}`;
      return spawned('bash', ['-c', script], environment, options);
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGKILL');
    },
  };
}

/** Waits until the command has printed something; the test's own time limit ends the wait. */
export async function printed({ output }: StartedCommand, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const found = pattern.exec(output.stdout);
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { COMMANDS } from '../../scripts/support/entry-points.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A program that was started. */
export interface StartedCommand {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  readonly output: { stdout: string; stderr: string };
  readonly exitCode: Promise<number | null>;
}

/** Programs of this package, bundled once from the sources. */
export interface Commands extends AsyncDisposable {
  /** Starts one of them; without the variables of this process that say where the service is. */
  start(
    name: keyof typeof COMMANDS,
    args: readonly string[],
    environment?: NodeJS.ProcessEnv,
  ): StartedCommand;
}

/** Bundles the programs: to compile the sources anew for every process would take most of a test's time. */
export async function bundleCommands(): Promise<Commands> {
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp', 'commands-'));
  await build({
    entryPoints: COMMANDS,
    absWorkingDir: ROOT,
    outdir: folder,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    target: 'es2022',
    logLevel: 'error',
  });
  const children: ChildProcess[] = [];
  return {
    start(name, args, environment = {}) {
      const {
        TRACKING_BASE_URL: _url,
        TRACKING_API_KEY: _key,
        TRACKING_WEBHOOK_SECRET: _secret,
        ...env
      } = process.env;
      const child = spawn(process.execPath, [join(folder, `${name}.cjs`), ...args], {
        env: { ...env, ...environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      children.push(child);
      const output = { stdout: '', stderr: '' };
      child.stdout.on('data', (chunk: Buffer) => {
        output.stdout += chunk.toString();
      });
      child.stderr.on('data', (chunk: Buffer) => {
        output.stderr += chunk.toString();
      });
      const exitCode = new Promise<number | null>((resolve) => child.on('close', resolve));
      return { child, output, exitCode };
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill('SIGKILL');
      await rm(folder, { recursive: true });
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

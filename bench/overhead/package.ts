import { mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install, packInto } from '../../scripts/support/packed.ts';
import { sum } from '../statistics.ts';

export interface InstalledPackage {
  /** Path of the app that the package is installed into. */
  readonly app: string;
  /** The size of the package on the disk, without its dependencies. */
  readonly unpackedBytes: number;
  /** Names of the dependencies that were installed with it. */
  readonly packages: readonly string[];
}

async function countBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(async (file) => (await stat(join(file.parentPath, file.name))).size),
  );
  return sum(sizes);
}

/** Packs the package and installs it into an empty app. */
export async function installPackage(): Promise<InstalledPackage> {
  const app = await mkdtemp(join(tmpdir(), 'tracking-client-app-'));
  await packInto(app);
  await writeFile(join(app, 'package.json'), '{ "private": true }');
  const { isGood, output } = await install(app, ['./tracking-client.tgz']);
  if (!isGood) throw new Error(`The package could not be installed:\n${output}`);
  const modules = join(app, 'node_modules');
  const lock: { packages: Record<string, unknown> } = JSON.parse(
    await readFile(join(modules, '.package-lock.json'), 'utf8'),
  );
  const installed = Object.keys(lock.packages).map((path) => path.replace(/^node_modules\//, ''));
  return {
    app,
    unpackedBytes: await countBytes(join(modules, 'tracking-client')),
    packages: installed.filter((name) => name !== 'tracking-client').sort(),
  };
}

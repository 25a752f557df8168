import { mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install, packInto } from '../../scripts/support/packed.ts';

/** What an install of the package puts on a disk. */
export interface InstalledPackage {
  /** The folder of the app it was installed into. */
  readonly app: string;
  readonly unpackedBytes: number;
  /** The packages that came with it, itself not counted. */
  readonly companions: readonly string[];
}

async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(async (file) => (await stat(join(file.parentPath, file.name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
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
    unpackedBytes: await bytesIn(join(modules, 'tracking-client')),
    companions: installed.filter((name) => name !== 'tracking-client').sort(),
  };
}

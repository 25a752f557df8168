import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, '.tmp', 'programs');

/**
 * Bundles a program of this repository into one JavaScript file, because loading `tsx` and compiling would cost each of its
 * many processes more than half a second of processor time. Libraries stay imports.
 *
 * @param program - path from the root of the repository, or an absolute path
 * @param packageFolder - an unpacked package, which replaces the sources of this repository. Default: none
 * @returns the file to run
 */
export async function bundled(program: string, packageFolder?: string): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [program],
    bundle: true,
    write: false,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'silent',
    plugins: packageFolder === undefined ? [] : [replaceSources(packageFolder)],
  });
  const [{ contents } = { contents: new Uint8Array() }] = outputFiles;
  const hash = createHash('sha256').update(contents).digest('hex').slice(0, 12);
  const file = join(FOLDER, `${basename(program, '.ts')}-${hash}.mjs`);
  // Write a draft and rename it, because another process may write the same file.
  const draft = `${file}.${randomUUID()}`;
  await mkdir(FOLDER, { recursive: true });
  await writeFile(draft, contents);
  await rename(draft, file);
  return file;
}

/** Loads the entries of an unpacked package instead of those in `src`. */
function replaceSources(packageFolder: string): Plugin {
  const entry = /\/src\/(?:(\w+)\/)?index\.ts$/;
  return {
    name: 'replace-sources',
    setup: ({ onResolve }) =>
      onResolve({ filter: entry }, ({ path }) => ({
        path: join(packageFolder, 'dist', `${entry.exec(path)?.[1] ?? 'index'}.js`),
      })),
  };
}

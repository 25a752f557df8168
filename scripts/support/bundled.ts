import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, '.tmp', 'programs');

/**
 * Bundles a program of this repository into one JavaScript file, because loading `tsx` and compiling would cost each of its
 * many processes more than half a second of processor time. Libraries stay imports.
 *
 * @param program - path from the root of the repository, or an absolute path
 * @returns the file to run
 */
export async function bundled(program: string): Promise<string> {
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

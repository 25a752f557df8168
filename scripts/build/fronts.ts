import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, posix, resolve } from 'node:path';
import { build } from 'esbuild';
import type { Options } from 'tsup';
import { VERSION } from '../../src/config/config.ts';
import { HELD_LIBRARIES, heldLibrariesOf, SHIPPED_LIBRARIES } from './libraries.ts';

type Plugin = NonNullable<Options['plugins']>[number];

const DIST = resolve('dist');

async function write(path: string, code: string): Promise<void> {
  const file = resolve(DIST, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, code);
}

/** The held libraries that a body takes, itself or through its chunks. */
async function librariesOf(body: string, seen = new Set<string>()): Promise<Set<string>> {
  seen.add(body);
  const code = await readFile(resolve(DIST, 'body', body), 'utf8');
  const libraries = new Set(heldLibrariesOf(code));
  for (const [, path = ''] of code.matchAll(/require\("(\.[^"]+)"\)/g)) {
    const chunk = posix.join(posix.dirname(body), path);
    if (seen.has(chunk) || chunk.includes('libraries/')) continue;
    for (const library of await librariesOf(chunk, seen)) libraries.add(library);
  }
  return libraries;
}

async function writeLibraries(target: string): Promise<void> {
  // On the global object, for a test runner may load this file twice: once by itself and once by Node.
  const holder = `globalThis[Symbol.for('tracking-client ${VERSION} libraries')]`;
  await write('libraries/held.cjs', `module.exports = ${holder} ??= {};\n`);
  for (const name of HELD_LIBRARIES) {
    const imports = `import held from './held.cjs';\nimport * as library from '${name}';\n`;
    await write(`libraries/${name}.js`, `${imports}held['${name}'] ??= library;\n`);
    await write(`libraries/${name}.cjs`, `require('./held.cjs')['${name}'] ??= require('${name}');\n`);
  }
  const shipped = new Set<string>();
  for (const name of SHIPPED_LIBRARIES) {
    const { metafile } = await build({
      stdin: { contents: `module.exports = require('${name}').default;`, resolveDir: '.' },
      bundle: true,
      minify: true,
      format: 'cjs',
      platform: 'node',
      target,
      banner: { js: '"use strict";' },
      outfile: resolve(DIST, 'libraries', `${name}.cjs`),
      metafile: true,
    });
    for (const input of Object.keys(metafile.inputs)) {
      const [, library] = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input) ?? [];
      if (library !== undefined) shipped.add(library);
    }
  }
  const licenses = [...shipped].sort().map(async (name) => {
    const text = await readFile(resolve('node_modules', name, 'license'), 'utf8');
    return `${name}\n\n${text.trim()}\n`;
  });
  await write('libraries/LICENSES.txt', (await Promise.all(licenses)).join('\n\n'));
}

async function writeFront(entry: string): Promise<void> {
  const up = posix.relative(posix.dirname(entry), '.') || '.';
  const libraries = [...(await librariesOf(`${entry}.cjs`))].sort();
  const requires = libraries.map((name) => `require('${up}/libraries/${name}.cjs');\n`).join('');
  const front = `${requires}module.exports = require('${up}/body/${entry}.cjs');\n`;
  await write(`${entry}.cjs`, front);
  const names = Object.keys(createRequire(import.meta.url)(resolve(DIST, `${entry}.cjs`))).join(', ');
  // Never run: it tells loaders that can't look through the `require` what an import of this file may name.
  await write(`${entry}.cjs`, `${front}0 && (module.exports = { ${names} });\n`);

  const imports = libraries.map((name) => `import '${up}/libraries/${name}.js';\n`).join('');
  // Node reads all of a CommonJS file that is imported to guess its exports, which takes longer than to run it; so a small
  // one is imported, which requires the body.
  await write(
    `body/${entry}.load.cjs`,
    `module.exports = () => require('./${posix.basename(entry)}.cjs');\n`,
  );
  const load = `import load from '${up}/body/${entry}.load.cjs';\n`;
  await write(`${entry}.js`, `${imports}${load}export const { ${names} } = load();\n`);
}

/**
 * Gives every entry point, whose body exists once and as CommonJS, a front for `import` and one for `require`: each hands
 * the body the libraries of its own format, and hands on what the body exports.
 *
 * @param options - the `entries` and the `commands`, as paths in `dist` without extension; the `target` of the language
 */
export function fronts(options: {
  readonly entries: readonly string[];
  readonly commands: readonly string[];
  readonly target: string;
}): Plugin {
  return {
    name: 'fronts',
    async buildEnd() {
      await writeLibraries(options.target);
      for (const entry of options.entries) await writeFront(entry);
      for (const command of options.commands) {
        const libraries = [...(await librariesOf(`${command}.cjs`))].map((name) => `./libraries/${name}.cjs`);
        const requires = [...libraries, `./body/${command}.cjs`].map((path) => `require('${path}');\n`);
        await write(`${command}.cjs`, `#!/usr/bin/env node\n${requires.join('')}`);
      }
    },
  };
}

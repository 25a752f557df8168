// After the build: gives every entry point declarations for `import`. They hand on those for `require`, so that they are
// shipped once, unless they name types of msw: its ES module and its CommonJS declare classes that TypeScript holds apart.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json' with { type: 'json' };

const root = new URL('../../', import.meta.url);
const dist = new URL('dist/', root);

for (const name of await readdir(dist, { recursive: true })) {
  if (!name.endsWith('.d.cts')) continue;
  const text = await readFile(new URL(name, dist), 'utf8');
  // Four spaces a level are a twentieth of the package.
  const tabbed = text.replace(/^( {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4));
  await writeFile(new URL(name, dist), tabbed);
}

for (const targets of Object.values(manifest.exports)) {
  if (typeof targets === 'string') continue;
  const forRequire = fileURLToPath(new URL(targets.require.types, root));
  const declarations = await readFile(forRequire, 'utf8');
  const content = declarations.includes("from 'msw'")
    ? declarations
    : `export * from './${basename(forRequire, '.d.cts')}.cjs';\n`;
  await writeFile(new URL(targets.import.types, root), content);
}

import { defineConfig, type Options } from 'tsup';
import { COMMANDS, ENTRY_POINTS } from './scripts/support/entry-points.ts';

// The client and the errors are entries of their own, though these are not packed, so that neither shares a file with other code:
// a program that imports only `sortEvents` or `isTrackingError` then bundles nothing else. Bundlers drop whole files, but not
// statements that call zod.
const entry = { ...ENTRY_POINTS, client: 'src/client.ts', errors: 'src/errors.ts' };

/** The same entries, as tsc declares them; the first step of `npm run build`. */
const declarations = Object.fromEntries(
  Object.entries(ENTRY_POINTS).map(([name, source]) => [
    name,
    source.replace(/^src\/(.*)\.ts$/, '.tmp/declarations/$1.d.ts'),
  ]),
);

const shared: Options = { target: 'es2022', splitting: true, removeNodeProtocol: false };

export default defineConfig([
  { ...shared, entry, format: 'esm' },
  {
    ...shared,
    entry,
    // The second step of `npm run build` turns it into CommonJS: esbuild splits ES modules only, and tsup's own step (sucrase)
    // writes code that nobody can read, where `?.` and class fields are calls of helpers.
    format: 'esm',
    outExtension: () => ({ js: '.cjs' }),
    // These are ESM only, which jest cannot `require`. THIRD-PARTY-LICENSES.txt has their terms.
    noExternal: ['ky', 'p-retry', 'p-throttle'],
  },
  {
    ...shared,
    entry: COMMANDS,
    format: 'esm',
    outDir: 'dist/cli',
    // They import the package as any program does. Their other libraries are bundled, because a server that installs the
    // package should not get a table library with it; THIRD-PARTY-LICENSES.txt has the terms.
    external: [/^tracking-client/, '@colors/colors/safe'],
    minify: true,
    esbuildOptions: (options) => {
      // Short lines, because a stack trace prints the line it comes from.
      options.lineLimit = 160;
    },
    // The CommonJS libraries among them need `require` for Node's own modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  },
  // tsc has written the declarations of each file. Made here from the sources, they would take twice as long: once for each format.
  { entry: declarations, format: ['esm', 'cjs'], dts: { only: true } },
]);

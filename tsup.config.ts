import { defineConfig, type Options } from 'tsup';
import { COMMANDS, ENTRY_POINTS } from './scripts/support/entry-points.ts';

// The client and the errors are entries of their own, so that neither shares a file with other code. A program that imports
// only `sortEvents` or `isTrackingError` then bundles nothing else, because bundlers drop whole files, but not statements that
// call zod. These two entries are not packed.
const entry = { ...ENTRY_POINTS, client: 'src/client.ts', errors: 'src/errors.ts' };

/** The declarations that tsc writes for the entry points in the first step of `npm run build`. */
const declarations = Object.fromEntries(
  Object.entries(ENTRY_POINTS).map(([name, source]) => [
    name,
    source.replace(/^src\/(.*)\.ts$/, '.tmp/declarations/$1.d.ts'),
  ]),
);

/** The last step of `npm run build` moves this folder to `dist`, so that `dist` is never incomplete. */
const outDir = '.tmp/dist';
const shared: Options = {
  outDir,
  silent: true,
  target: 'es2022',
  splitting: true,
  removeNodeProtocol: false,
};

export default defineConfig([
  { ...shared, entry, format: 'esm' },
  {
    ...shared,
    entry,
    // The second step of `npm run build` turns this output into CommonJS, because esbuild splits ES modules only, and tsup's own
    // step (sucrase) writes unreadable code, in which `?.` and class fields are calls of helpers.
    format: 'esm',
    outExtension: () => ({ js: '.cjs' }),
    // Bundle these ES modules, because jest cannot `require` them. THIRD-PARTY-LICENSES.txt has their terms.
    noExternal: ['ky', 'p-retry', 'p-throttle'],
    // So that the package can be required in tests with jsdom.
    inject: ['scripts/support/text-encoding.ts'],
  },
  {
    ...shared,
    entry: COMMANDS,
    format: 'esm',
    outDir: `${outDir}/cli`,
    // The commands import the package as any program does. Their other libraries are bundled, because a server that installs
    // the package should not get a table library with it; THIRD-PARTY-LICENSES.txt has the terms.
    external: [/^tracking-client/, '@colors/colors/safe'],
    minify: true,
    esbuildOptions: (options) => {
      // Keep lines short, because a stack trace prints the whole line that threw.
      options.lineLimit = 160;
    },
    // The bundled CommonJS libraries need `require` for Node's own modules.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  },
  // Bundle the declarations that tsc wrote. From the sources, tsup would make them twice: once for each format.
  { outDir, silent: true, entry: declarations, format: ['esm', 'cjs'], dts: { only: true } },
]);

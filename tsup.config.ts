import { defineConfig, type Options } from 'tsup';
import { COMMANDS, ENTRY_POINTS } from './scripts/support/entry-points.ts';

// The client as an entry of its own, which is not packed: it keeps the client's code out of `index.js`, so that a program which
// imports `sortEvents` alone gets that alone. Bundlers drop whole files, but not statements that call zod.
const entry = { ...ENTRY_POINTS, client: 'src/client.ts' };

const shared: Options = { target: 'es2022', splitting: true, removeNodeProtocol: false };

export default defineConfig([
  { ...shared, entry, format: 'esm' },
  {
    ...shared,
    entry,
    // Becomes CommonJS in the second step of `npm run build`: esbuild splits ES modules only, and what tsup itself makes of
    // them (by sucrase) nobody can read: `?.` and class fields turn into calls of helpers.
    format: 'esm',
    outExtension: () => ({ js: '.cjs' }),
    // ESM only, and jest cannot `require` that. THIRD-PARTY-LICENSES.txt has their terms.
    noExternal: ['ky', 'p-retry', 'p-throttle'],
  },
  {
    ...shared,
    entry: COMMANDS,
    format: 'esm',
    outDir: 'dist/cli',
    // Programs like those of any user. What else they use is inside them, since those who install the package for their
    // server should not install a table library with it; THIRD-PARTY-LICENSES.txt has the terms.
    external: [/^tracking-client/, '@colors/colors/safe'],
    minify: true,
    esbuildOptions: (options) => {
      // A stack trace shows the line it comes from.
      options.lineLimit = 160;
    },
    // What the CommonJS libraries among them require Node's own modules with.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  },
  {
    entry: ENTRY_POINTS,
    format: ['esm', 'cjs'],
    // Internal constructors would drag the declarations of everything behind them along.
    dts: { only: true, compilerOptions: { stripInternal: true } },
  },
]);

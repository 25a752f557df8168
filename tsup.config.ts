import { defineConfig, type Options } from 'tsup';
import { ENTRY_POINTS } from './scripts/support/entry-points.ts';

const shared: Options = { target: 'es2022', splitting: true, removeNodeProtocol: false };

export default defineConfig([
  { ...shared, entry: ENTRY_POINTS, format: 'esm' },
  {
    ...shared,
    entry: { ...ENTRY_POINTS, 'tracking-client-fake': 'src/testing/cli/main.ts' },
    // Becomes CommonJS in the second step of `npm run build`: esbuild splits ES modules only, and what tsup itself makes of
    // them (by sucrase) nobody can read: `?.` and class fields turn into calls of helpers.
    format: 'esm',
    outExtension: () => ({ js: '.cjs' }),
    // ESM only, and jest cannot `require` that. THIRD-PARTY-LICENSES.txt has their terms.
    noExternal: ['ky', 'p-retry', 'p-throttle'],
  },
  {
    entry: ENTRY_POINTS,
    format: ['esm', 'cjs'],
    // Internal constructors would drag the declarations of everything behind them along.
    dts: { only: true, compilerOptions: { stripInternal: true } },
  },
]);

import { defineConfig } from 'tsup';
import { compactSourceMaps } from './scripts/build/compact-source-maps.ts';
import { fronts } from './scripts/build/fronts.ts';
import { HELD_LIBRARIES, SHIPPED_LIBRARIES } from './scripts/build/libraries.ts';
import { smallBodies } from './scripts/build/small-bodies.ts';
import { ENTRY_POINTS } from './scripts/support/entry-points.ts';

const command = 'tracking-client-fake';
const target = 'es2022';

// The code exists once, as CommonJS, with a front for `import` and one for `require`: a process that uses both has one
// class of each error and one copy in memory, and the package is half as large as with two builds.
export default defineConfig([
  {
    entry: { ...ENTRY_POINTS, [command]: 'src/testing/cli/main.ts' },
    outDir: 'dist/body',
    outExtension: () => ({ js: '.cjs' }),
    format: 'esm',
    platform: 'node',
    target,
    splitting: true,
    sourcemap: true,
    removeNodeProtocol: false,
    external: [...HELD_LIBRARIES, ...SHIPPED_LIBRARIES],
    plugins: [
      smallBodies(target),
      compactSourceMaps(),
      fronts({ entries: Object.keys(ENTRY_POINTS), commands: [command], target }),
    ],
  },
  {
    entry: ENTRY_POINTS,
    format: 'cjs',
    // Internal constructors would drag the declarations of everything behind them along.
    dts: { only: true, compilerOptions: { stripInternal: true } },
  },
]);

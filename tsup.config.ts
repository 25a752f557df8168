import { defineConfig, type Options } from 'tsup';

const libraries = {
  index: 'src/index.ts',
  webhooks: 'src/webhooks/index.ts',
  redis: 'src/redis/index.ts',
  postgres: 'src/postgres/index.ts',
  testing: 'src/testing/index.ts',
  'testing/msw': 'src/testing/msw.ts',
};

const shared: Options = {
  entry: libraries,
  target: 'es2022',
  platform: 'node',
  splitting: true,
  sourcemap: true,
  dts: { entry: libraries },
};

export default defineConfig([
  {
    ...shared,
    // The command needs no second format and no types.
    entry: { ...libraries, 'tracking-client-fake': 'src/testing/cli/main.ts' },
    format: 'esm',
    clean: true,
  },
  {
    ...shared,
    format: 'cjs',
    // These are ESM only; a CommonJS build that required them would fail under jest and on loaders without require(esm).
    noExternal: ['ky', 'p-retry', 'p-throttle', 'is-network-error'],
  },
]);

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { rollup } from 'rollup';
import { createServer, build as vite } from 'vite';
import webpack from 'webpack';

const RESULT = 'LA680658838NL NotFoundError 200 e1 function function';
/** Output goes to this folder, so that Node finds external packages. */
const folder = mkdtempSync(join(process.cwd(), 'bundled-'));

function runFile(file) {
  return execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim();
}

for (const [title, ssr] of [
  ['vite dev SSR, the package left to Node → runs', {}],
  ['vite dev SSR that transforms every package (`ssr.noExternal`) → runs', { noExternal: true }],
]) {
  test(title, async () => {
    const server = await createServer({
      server: { middlewareMode: true, hmr: false, ws: false },
      appType: 'custom',
      ssr,
      logLevel: 'error',
    });
    try {
      const { run } = await server.ssrLoadModule('/src/server.js');
      assert.equal(await run(), RESULT);
    } finally {
      await server.close();
    }
  });
}

test('vite build for a server, everything bundled → runs', async () => {
  const outDir = join(folder, 'vite');
  await vite({
    build: { ssr: 'src/main.js', outDir, rollupOptions: { output: { entryFileNames: 'main.mjs' } } },
    ssr: { noExternal: true },
    logLevel: 'error',
  });
  assert.equal(runFile(join(outDir, 'main.mjs')), RESULT);
});

test('rollup → runs', async () => {
  const bundle = await rollup({
    input: 'src/main.js',
    plugins: [nodeResolve({ exportConditions: ['node'] })],
    onwarn: (warning) => {
      // Other packages cause warnings, too; only those about this package fail the test.
      if (warning.id?.includes('node_modules/tracking-client/')) throw new Error(warning.message);
    },
  });
  const file = join(folder, 'rollup.mjs');
  await bundle.write({ file, format: 'esm', inlineDynamicImports: true });
  await bundle.close();
  assert.equal(runFile(file), RESULT);
});

test('webpack, for CommonJS → runs', async () => {
  const compiler = webpack({
    mode: 'production',
    target: 'node20',
    entry: resolve('src/main.js'),
    // Skip minification, because it takes nearly a minute and does not change what the program does.
    optimization: { minimize: false },
    output: { path: folder, filename: 'webpack.cjs' },
  });
  const stats = await new Promise((done, fail) => {
    compiler.run((error, result) => (error ? fail(error) : done(result)));
  });
  assert.equal(stats.hasErrors(), false, stats.toString({ all: false, errors: true }));
  assert.equal(runFile(join(folder, 'webpack.cjs')), RESULT);
});

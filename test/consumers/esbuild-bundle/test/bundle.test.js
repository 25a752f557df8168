import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';

const folder = mkdtempSync(join(process.cwd(), 'bundled-'));

/** Bundles one program as for a serverless platform, runs it, and returns its output and the bundled files. */
async function bundle(entry, format) {
  const outfile = join(folder, `${entry}.${format === 'esm' ? 'mjs' : 'cjs'}`);
  const { metafile } = await build({
    entryPoints: [`src/${entry}.js`],
    bundle: true,
    platform: 'node',
    target: 'node20',
    format,
    outfile,
    metafile: true,
    logLevel: 'error',
  });
  const printed = execFileSync(process.execPath, [outfile], { encoding: 'utf8' }).trim();
  return { printed, files: Object.keys(metafile.inputs) };
}

/** Matches the files that only a program with HTTP calls needs. */
const clientFile = /^node_modules\/(tracking-client\/dist\/index\.c?js$|ky\/)/;

test('a webhook receiver as an ES module → runs, without the HTTP client', async () => {
  const { printed, files } = await bundle('receiver', 'esm');
  assert.equal(printed, '1');
  assert.deepEqual(
    files.filter((file) => clientFile.test(file)),
    [],
  );
});

test('a client of all entry points as an ES module → runs, with one zod', async () => {
  const { printed, files } = await bundle('client', 'esm');
  assert.equal(printed, 'LA680658838NL function function');
  assert.ok(files.includes('node_modules/tracking-client/dist/index.js'));
  assert.ok(files.some((file) => file.startsWith('node_modules/ky/')));
  assert.ok(files.some((file) => file.endsWith('zod/index.js')));
  assert.ok(!files.some((file) => file.endsWith('zod/index.cjs')));
});

test('a webhook receiver as CommonJS → runs, without the HTTP client', async () => {
  const { printed, files } = await bundle('receiver', 'cjs');
  assert.equal(printed, '1');
  assert.ok(!files.some((file) => clientFile.test(file)));
});

for (const [name, program, maxKilobytes] of [
  [
    'TrackingClient',
    "import { TrackingClient } from 'tracking-client'; console.log(new TrackingClient());",
    240,
  ],
  ['sortEvents', "import { sortEvents } from 'tracking-client'; console.log(sortEvents([]));", 5],
  [
    'createWebhookHandler and toNodeHandler',
    "import { createWebhookHandler, toNodeHandler } from 'tracking-client/webhooks'; console.log(toNodeHandler(createWebhookHandler({})));",
    175,
  ],
  [
    'isTrackingError',
    "import { isTrackingError } from 'tracking-client'; console.log(isTrackingError(0));",
    5,
  ],
]) {
  test(`a program with ${name} only, minified → at most ${maxKilobytes} kB`, async (context) => {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: process.cwd() },
      bundle: true,
      minify: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      write: false,
      logLevel: 'error',
    });
    const kilobytes = outputFiles[0].contents.length / 1000;
    context.diagnostic(`${name}: ${kilobytes.toFixed(1)} kB`);
    assert.ok(
      kilobytes <= maxKilobytes,
      `Expected at most ${maxKilobytes} kB, got ${kilobytes.toFixed(1)} kB`,
    );
  });
}

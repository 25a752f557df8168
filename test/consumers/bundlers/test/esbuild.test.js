import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';

const RECEIVER = `
  import { parseWebhook } from 'tracking-client/webhooks';
  console.log(parseWebhook('{"trackerId":"t1","events":[{"eventId":"e1"}]}').messages.length);`;

/** Bundles a program as for a serverless platform; returns the code and the bundled files. */
async function bundle(contents, options = {}) {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: process.cwd() },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    write: false,
    metafile: true,
    logLevel: 'error',
    ...options,
  });
  return { code: outputFiles[0].contents, files: Object.keys(metafile.inputs) };
}

function runCode(code, extension) {
  const file = join(mkdtempSync(join(process.cwd(), 'bundled-')), `program.${extension}`);
  writeFileSync(file, code);
  return execFileSync(process.execPath, [file], { encoding: 'utf8' }).trim();
}

for (const [format, extension] of [
  ['esm', 'mjs'],
  ['cjs', 'cjs'],
])
  test(`a webhook receiver, ${format} → runs, without the HTTP client`, async () => {
    const { code, files } = await bundle(RECEIVER, { format });
    assert.equal(runCode(code, extension), '1');
    const clientFile = /^node_modules\/(tracking-client\/dist\/index\.c?js$|ky\/)/;
    assert.deepEqual(
      files.filter((file) => clientFile.test(file)),
      [],
    );
  });

test('a client of all entry points as an ES module → runs, with one zod', async () => {
  const { code, files } = await bundle("import './src/main.js';");
  assert.equal(runCode(code, 'mjs'), 'LA680658838NL NotFoundError 200 e1 function function');
  assert.ok(files.includes('node_modules/tracking-client/dist/index.js'));
  assert.ok(files.some((file) => file.startsWith('node_modules/ky/')));
  assert.ok(files.some((file) => file.endsWith('zod/index.js')));
  assert.ok(!files.some((file) => file.endsWith('zod/index.cjs')));
});

for (const [names, entry, use, maxKilobytes] of [
  ['TrackingClient', 'tracking-client', 'new TrackingClient()', 255],
  ['sortEvents', 'tracking-client', 'sortEvents([])', 5],
  [
    'createWebhookHandler, toNodeHandler',
    'tracking-client/webhooks',
    'toNodeHandler(createWebhookHandler({}))',
    190,
  ],
  ['isTrackingError', 'tracking-client', 'isTrackingError(0)', 5],
])
  test(`a program with ${names} only, minified → at most ${maxKilobytes} kB`, async (context) => {
    const program = `import { ${names} } from '${entry}'; console.log(${use});`;
    const { code } = await bundle(program, { minify: true });
    context.diagnostic(`${names}: ${(code.length / 1000).toFixed(1)} kB`);
    assert.ok(code.length <= maxKilobytes * 1000, `got ${code.length} bytes`);
  });

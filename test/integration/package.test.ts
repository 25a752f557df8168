import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };
import { packInto } from '../../scripts/support/pack.ts';
import { mustRun } from '../../scripts/support/run.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);
const packedSchema = z.tuple([
  z.object({ unpackedSize: z.number(), files: z.array(z.object({ path: z.string() })) }),
]);

/** What the program of a user prints, as JSON. */
async function printedBy(code: string): Promise<unknown> {
  return JSON.parse(await mustRun(process.execPath, ['--input-type=module', '--eval', code], { cwd: root }));
}

const entries = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => path.replace(/^\./, 'tracking-client'));

describe('the package', () => {
  let scratch = '';
  let packed: z.output<typeof packedSchema>[0] = { unpackedSize: 0, files: [] };

  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'tracking-client-package-'));
    await packInto(scratch); // Builds when what is built is older than a source.
    const printed = await mustRun(
      'npm',
      ['pack', '--dry-run', '--ignore-scripts', '--json', '--loglevel=error'],
      {
        cwd: root,
      },
    );
    [packed] = packedSchema.parse(JSON.parse(printed.slice(printed.indexOf('['))));
  }, 180_000);

  afterAll(async () => {
    await rm(scratch, { recursive: true, force: true });
  });

  it('packed → holds what runs, its declarations and maps, and nothing else', () => {
    const others = packed.files
      .map(({ path }) => path)
      .filter((path) => !/^dist\/.*\.(c?js|cjs\.map|d\.c?ts)$/.test(path));
    expect(others.sort()).toEqual(['LICENSE', 'README.md', 'dist/libraries/LICENSES.txt', 'package.json']);
  });

  it('every body and library → strict, as the ES module it comes from', async () => {
    const paths = packed.files.map(({ path }) => path);
    const scripts = paths.filter((path) =>
      /^dist\/(body|libraries)\/(?!.*(load|held|zod|msw)\.cjs).*\.cjs$/.test(path),
    );
    const texts = await Promise.all(scripts.map((path) => readFile(join(root, path), 'utf8')));
    expect(scripts.length).toBeGreaterThan(10);
    expect(scripts.filter((_, index) => !/^(#!.*\n)?"use strict";/.test(texts[index] ?? ''))).toEqual([]);
  });

  it('the licenses → of every library that is shipped', async () => {
    const text = await readFile(join(root, 'dist/libraries/LICENSES.txt'), 'utf8');
    expect(text.match(/^[\w-]+$/gm)).toEqual(['is-network-error', 'ky', 'p-retry', 'p-throttle']);
  });

  it('unpacked → at most 600 kB', () => {
    expect(packed.unpackedSize).toBeLessThanOrEqual(600_000);
  });

  it('every file the manifest names → packed', () => {
    const named = JSON.stringify([manifest.exports, manifest.bin]).match(/dist\/[\w./-]+/g) ?? [];
    const paths = packed.files.map(({ path }) => path);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => !paths.includes(path))).toEqual([]);
  });

  it.each(entries)('%s imported and required → the very same exports', async (entry) => {
    const same = await printedBy(`
      import { createRequire } from 'node:module';
      import * as imported from '${entry}';
      const required = createRequire(import.meta.url)('${entry}');
      const names = Object.keys(required);
      console.log(JSON.stringify({
        missing: names.filter((name) => !(name in imported)),
        others: names.filter((name) => required[name] !== imported[name]),
        count: names.length,
      }));
    `);
    expect(same).toEqual({ missing: [], others: [], count: Object.keys(require(entry)).length });
  });

  it('the client imported → ky is not loaded before the first call', async () => {
    const loaded = await printedBy(`
      import { createRequire } from 'node:module';
      import { TrackingClient } from 'tracking-client';
      import { createFakeTrackingService } from 'tracking-client/testing';
      const require = createRequire(import.meta.url);
      const isLoaded = () => Object.keys(require.cache).some((file) => file.endsWith('ky.cjs'));
      const fake = createFakeTrackingService();
      const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
      const before = isLoaded();
      await client.couriers.list();
      console.log(JSON.stringify([before, isLoaded()]));
    `);
    expect(loaded).toEqual([false, true]);
  });

  it('an error with source maps on → its stack names the sources', async () => {
    const code = `
      const { TrackingClient } = await import('tracking-client');
      try { new TrackingClient({ baseUrl: 'nonsense', apiKey: 'k' }); } catch (error) { console.log(JSON.stringify(error.stack)); }
    `;
    const args = ['--enable-source-maps', '--input-type=module', '--eval', code];
    const stack: unknown = JSON.parse(await mustRun(process.execPath, args, { cwd: root }));
    expect(stack).toMatch(/resolveBaseUrl \(.*src\/base-url\.ts:\d+/);
  });
});

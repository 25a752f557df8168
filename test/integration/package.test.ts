import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };
import { packInto } from '../../scripts/support/packed.ts';
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

  async function scripts(extension: string): Promise<string> {
    const paths = packed.files.map(({ path }) => path).filter((path) => path.endsWith(extension));
    expect(paths.length).toBeGreaterThan(6);
    return (await Promise.all(paths.map((path) => readFile(join(root, path), 'utf8')))).join('\n');
  }

  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'tracking-client-package-'));
    await packInto(scratch); // Builds when what is built is older than a source.
    const printed = await mustRun(
      'npm',
      ['pack', '--dry-run', '--ignore-scripts', '--json', '--loglevel=error'],
      { cwd: root },
    );
    [packed] = packedSchema.parse(JSON.parse(printed.slice(printed.indexOf('['))));
  }, 180_000);

  afterAll(async () => {
    await rm(scratch, { recursive: true, force: true });
  });

  it('packed → holds what runs, its declarations, and nothing else', () => {
    const others = packed.files
      .map(({ path }) => path)
      .filter((path) => !/^dist\/.*\.(c?js|d\.c?ts)$/.test(path));
    expect(others.sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'THIRD-PARTY-LICENSES.txt',
      'docs/architecture.md',
      'docs/benchmarks.md',
      'docs/limits-and-retries.md',
      'docs/options.md',
      'docs/testing.md',
      'docs/troubleshooting.md',
      'docs/webhooks.md',
      'package.json',
    ]);
  });

  it('the links of a packed document → lead to packed files', async () => {
    const paths = packed.files.map(({ path }) => path);
    for (const document of paths.filter((path) => path.endsWith('.md'))) {
      const text = await readFile(join(root, document), 'utf8');
      // A picture that is missing is no link that leads nowhere.
      const links = [...text.matchAll(/(?<!!\[[^\]]*)\]\(([^)#\s]+)[^)\s]*\)/g)].flatMap(
        ([, link]) => link ?? [],
      );
      const local = links
        .filter((link) => !link.startsWith('https:'))
        .map((link) => normalize(join(dirname(document), link)));
      expect(
        local.filter((path) => !paths.includes(path)),
        document,
      ).toEqual([]);
    }
  });

  it('the third-party licenses → those of every library inside the CommonJS files', async () => {
    const text = await readFile(join(root, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    const names = text.match(/^[\w-]+$/gm);
    expect(names).toEqual(['ky', 'p-retry', 'is-network-error', 'p-throttle']);
    for (const name of names ?? [])
      expect(text).toContain(await readFile(join(root, 'node_modules', name, 'license'), 'utf8'));
  });

  it('ES modules → import their libraries, so that updates of these reach users', async () => {
    const code = await scripts('.js');
    for (const name of Object.keys(manifest.dependencies)) expect(code).toContain(`from "${name}"`);
  });

  it('CommonJS → requires no library that is ESM only', async () => {
    const code = await scripts('.cjs');
    const libraries = new Set([...code.matchAll(/\brequire\("([^."][^"]*)"\)/g)].map(([, name]) => name));
    expect([...libraries].filter((name) => !name?.startsWith('node:')).sort()).toEqual(['msw', 'zod']);
  });

  it('a class of ours → keeps its name, which stack traces show', async () => {
    expect((await scripts('.js')).match(/class _\w+/g)).toBe(null);
  });

  it('unpacked → at most 1.5 MB', () => {
    expect(packed.unpackedSize).toBeLessThanOrEqual(1_500_000);
  });

  it('every file the manifest names → packed', () => {
    const named = JSON.stringify([manifest.exports, manifest.bin]).match(/dist\/[\w./-]+/g) ?? [];
    const paths = packed.files.map(({ path }) => path);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => !paths.includes(path))).toEqual([]);
  });

  it.each(entries)('%s imported and required → the same names', async (entry) => {
    const names = await printedBy(`
      import { createRequire } from 'node:module';
      import * as imported from '${entry}';
      const required = createRequire(import.meta.url)('${entry}');
      console.log(JSON.stringify([Object.keys(imported).sort(), Object.keys(required).sort()]));
    `);
    const expected = Object.keys(require(entry)).sort();
    expect(expected).not.toEqual([]);
    expect(names).toEqual([expected, expected]);
  });

  it.each([
    ['import', 'await import'],
    ['require', "(await import('node:module')).createRequire(import.meta.url)"],
  ])('%s of two entry points → one class of each error between them', async (_name, load) => {
    const isSame = await printedBy(`
      const load = async (name) => ${load}(name);
      const [root, webhooks] = [await load('tracking-client'), await load('tracking-client/webhooks')];
      console.log(JSON.stringify(root.TrackingError === webhooks.TrackingError));
    `);
    expect(isSame).toBe(true);
  });

  it('an error of the required copy → instance of the imported class', async () => {
    const caught = await printedBy(`
      import { createRequire } from 'node:module';
      import { ConfigurationError, TrackingError, WebhookParseError } from 'tracking-client';
      const { TrackingClient } = createRequire(import.meta.url)('tracking-client');
      try { new TrackingClient({ baseUrl: 'nonsense', apiKey: 'k' }); } catch (error) {
        const classes = [ConfigurationError, TrackingError, WebhookParseError];
        console.log(JSON.stringify(classes.map((one) => error instanceof one)));
      }
    `);
    expect(caught).toEqual([true, true, false]);
  });

  it.each([
    ['import', "await import('tracking-client')"],
    ['require', "require('tracking-client')"],
  ])(
    'an uncaught error after %s → a few readable lines, with the names of our classes',
    async (_name, load) => {
      const code = `(async () => { const { TrackingClient } = ${load}; new TrackingClient({ baseUrl: 'nonsense', apiKey: 'k' }); })();`;
      const printed = await mustRun('sh', ['-c', `"$0" --eval "$1" 2>&1 || true`, process.execPath, code], {
        cwd: root,
      });
      expect(printed).toMatch(/^ConfigurationError: Expected `baseUrl` to be/m);
      expect(printed).toMatch(/at new TrackingClient \(.*dist\/index\.c?js:\d+/);
      expect(printed.length).toBeLessThan(2_500);
    },
  );
});

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };
import { COMMANDS, ENTRY_POINTS } from '../../scripts/support/entry-points.ts';
import { packInto } from '../../scripts/support/packed.ts';
import { mustRun } from '../../scripts/support/run.ts';
import { installPacked, playQuickstart } from './quickstart.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const packedSchema = z.tuple([
  z.object({ unpackedSize: z.number(), files: z.array(z.object({ path: z.string(), size: z.number() })) }),
]);

const RECIPES = readdirSync(join(root, 'docs/recipes')).map((name) => `docs/recipes/${name}`);
const SHOP = readdirSync(join(root, 'examples/shop'))
  .filter((name) => /\.(?:ts|json)$/.test(name))
  .map((name) => `examples/shop/${name}`);

/** Runs a program of a user and parses the JSON that it prints. */
async function runCode(code: string): Promise<unknown> {
  return JSON.parse(await mustRun(process.execPath, ['--input-type=module', '--eval', code], { cwd: root }));
}

/** The folders of the libraries whose code is inside the CommonJS files and the programs. */
async function listBundledLibraries(): Promise<string[]> {
  const { ky: _ky, 'p-retry': _retry, 'p-throttle': _throttle, ...outside } = manifest.dependencies;
  const external = [...Object.keys(outside), ...Object.keys(manifest.peerDependencies)];
  const settings = {
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    metafile: true,
    write: false,
  } as const;
  const inputs = [ENTRY_POINTS, COMMANDS].map(async (entryPoints) => {
    const own = entryPoints === COMMANDS ? ['tracking-client', '@colors/colors'] : [];
    const options = {
      ...settings,
      entryPoints: { ...entryPoints },
      external: [...external, ...own],
      outdir: 'dist',
    };
    return Object.keys((await build(options)).metafile.inputs);
  });
  const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
  return [...new Set((await Promise.all(inputs)).flat().flatMap((path) => folder.exec(path)?.[0] ?? []))];
}

/** Bundles what an entry point of the build exports, or some of it, as a user's bundler does. */
async function bundleFor(
  options: BuildOptions,
  entry: string,
  names?: readonly string[],
): Promise<{ inputs: string[]; bytes: number }> {
  const contents =
    names === undefined
      ? `import * as all from '${entry}'; console.log(all);`
      : `import { ${names} } from '${entry}'; console.log(${names});`;
  const { metafile, outputFiles } = await build({
    ...options,
    absWorkingDir: root,
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    metafile: true,
    write: false,
    format: 'esm',
    // Without the path aliases of the repository, which lead to the sources.
    tsconfigRaw: {},
  });
  return { inputs: Object.keys(metafile.inputs), bytes: outputFiles[0]?.contents.length ?? Number.NaN };
}

/** The sources of the files of the build among these files; the build names the source of each part in a comment. */
async function listSources(inputs: readonly string[]): Promise<string[]> {
  const paths = inputs.filter((path) => path.startsWith('dist/'));
  const texts = await Promise.all(paths.map((path) => readFile(join(root, path), 'utf8')));
  return texts.flatMap((text) => [...text.matchAll(/^\/\/ (src\/\S+)/gm)].map(([, name = '']) => name));
}

/** A program of a user, in which an editor shows each hover that the test reads. */
const HOVERED = `
  import type { PerCallTracking, TrackingClient, TrackingSearchInput } from 'tracking-client';
  import type { EventsMessage, WebhookEvent } from 'tracking-client/webhooks';
  declare const parts: {
    event: WebhookEvent, message: EventsMessage, tracking: PerCallTracking, input: TrackingSearchInput, client: TrackingClient,
  };
  parts.event.occurrenceDatetime;
  parts.message.tracker;
  parts.message.tracker.isSubscribed;
  parts.message.events;
  parts.tracking.shipment;
  parts.input.courierCode;
  parts.client.trackers.results;
`;

/** Returns what an editor shows for the last name of each line of a program: the type, and the comment. */
function readHovers(program: string): Map<string, [type: string, comment: string]> {
  const file = join(root, 'hovered.ts');
  const readText = (path: string) => (path === file ? program : ts.sys.readFile(path));
  const service = ts.createLanguageService({
    ...ts.sys,
    readFile: readText,
    fileExists: (path) => path === file || ts.sys.fileExists(path),
    getScriptFileNames: () => [file],
    getScriptVersion: () => '',
    getScriptSnapshot: (path) => {
      const text = readText(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getCompilationSettings: () => ({ module: ts.ModuleKind.NodeNext, strict: true, types: [] }),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  });
  const names = [...program.matchAll(/parts\.(.*\b)(\w+);$/gm)];
  return new Map(
    names.map(({ index, 0: line, 1: path = '', 2: name = '' }) => {
      const info = service.getQuickInfoAtPosition(file, index + line.length - 2);
      const shown = [info?.displayParts, info?.documentation].map((parts) => ts.displayPartsToString(parts));
      return [path + name, [shown[0] ?? '', shown[1] ?? '']];
    }),
  );
}

const entries = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => path.replace(/^\./, 'tracking-client'));

describe('the package', () => {
  let scratch = '';
  let packed: z.output<typeof packedSchema>[0] = { unpackedSize: 0, files: [] };

  async function scripts(extension: string): Promise<string> {
    // Without the programs of the package, which are minified.
    const paths = packed.files
      .map(({ path }) => path)
      .filter((path) => path.endsWith(extension) && !path.startsWith('dist/cli/'));
    expect(paths.length).toBeGreaterThan(6);
    return (await Promise.all(paths.map((path) => readFile(join(root, path), 'utf8')))).join('\n');
  }

  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'tracking-client-package-'));
    await packInto(scratch);
    const flags = ['--dry-run', '--ignore-scripts', '--json', '--loglevel=error'];
    [packed] = packedSchema.parse(JSON.parse(await mustRun('npm', ['pack', ...flags], { cwd: root })));
  }, 180_000);

  afterAll(async () => {
    await rm(scratch, { recursive: true, force: true });
  });

  it('the packed package → contains programs, declarations, documents and the shop only', () => {
    const others = packed.files
      .map(({ path }) => path)
      .filter((path) => !/^dist\/.*\.(c?js|d\.c?ts)$/.test(path));
    expect(others.sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'THIRD-PARTY-LICENSES.txt',
      'docs/alerts.yml',
      'docs/benchmarks.md',
      'docs/bulk-import.md',
      'docs/command.md',
      'docs/how-the-service-works.md',
      'docs/limiters.svg',
      'docs/limits.md',
      'docs/logging.md',
      'docs/objects.md',
      'docs/options.md',
      'docs/page.png',
      'docs/polling.md',
      'docs/production.md',
      ...RECIPES,
      'docs/retries.md',
      'docs/service.md',
      'docs/shipments.md',
      'docs/shop.md',
      'docs/testing.md',
      'docs/troubleshooting.md',
      'docs/versions.md',
      'docs/webhooks.md',
      ...SHOP,
      'package.json',
    ]);
  });

  it('each packed file of dist → an entry point, the command, or a file that another packed file imports', async () => {
    const paths = packed.files.map(({ path }) => path).filter((path) => path.startsWith('dist/'));
    const named = JSON.stringify([manifest.exports, manifest.bin]);
    const texts = await Promise.all(paths.map((path) => readFile(join(root, path), 'utf8')));
    // A declaration imports another declaration by the name of its script.
    const isPart = (path: string) => {
      const imported = `/${basename(path).replace(/\.d\.(c?)ts$/, '.$1js')}`;
      return texts.some((text, index) => paths[index] !== path && text.includes(imported));
    };
    expect(paths.filter((path) => !named.includes(`./${path}"`) && !isPart(path))).toEqual([]);
  });

  it('each import of a packed file → a packed file, also between declarations', async () => {
    const paths = packed.files
      .map(({ path }) => path)
      .filter((path) => /^dist\/.*\.(?:c?js|d\.c?ts)$/.test(path));
    const imports = await Promise.all(
      paths.map(async (path) => {
        const text = await readFile(join(root, path), 'utf8');
        const targets = text.matchAll(/\b(?:from|import|require\()\s*["'](\.{1,2}\/[^"']+)["']/g);
        return [...targets].map(([, target = '']) => {
          const file = normalize(join(dirname(path), target));
          // A declaration imports another declaration by the name of its script.
          return /\.d\.c?ts$/.test(path) ? file.replace(/\.(c?)js$/, '.d.$1ts') : file;
        });
      }),
    );
    expect(imports.flat()).not.toEqual([]);
    expect(imports.flat().filter((file) => !paths.includes(file))).toEqual([]);
  });

  it('an install → runs no script of the package or of its dependencies', async () => {
    const lockSchema = z.object({
      packages: z.record(
        z.string(),
        z.object({ dev: z.boolean().default(false), hasInstallScript: z.boolean().default(false) }),
      ),
    });
    const { packages } = lockSchema.parse(
      JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')),
    );
    const running = Object.entries(packages).filter(
      ([, { dev, hasInstallScript }]) => !dev && hasInstallScript,
    );
    expect(running).toEqual([]);
    // npm runs `prepare` for a clone, a folder and a git URL, but not for a package of the registry or a tarball.
    const atInstall = /^(pre|post)?install$|^(pre|post)prepare$|^prepublish$/;
    expect(Object.keys(manifest.scripts).filter((name) => atInstall.test(name))).toEqual([]);
    // npm builds a package with such a file when it is installed.
    expect(packed.files.map(({ path }) => path)).not.toContain('binding.gyp');
  });

  it('the links, pictures and files that a packed document names → packed, too', async () => {
    const paths = packed.files.map(({ path }) => path);
    for (const document of paths.filter((path) => path.endsWith('.md'))) {
      const text = await readFile(join(root, document), 'utf8');
      const links = [...text.matchAll(/\]\(([^)#\s]+)[^)\s]*\)/g)].map(([, link = '']) => link);
      const linked = links
        .filter((link) => !link.startsWith('https:'))
        .map((link) => normalize(join(dirname(document), link)));
      const named = text.match(/\b(?:bench|examples|scripts)\/[\w./-]*/g) ?? [];
      // npm resolves the link to CONTRIBUTING.md against the repository.
      const isThere = (path: string) =>
        paths.includes(path) ||
        (path.endsWith('/') && paths.some((packed) => packed.startsWith(path))) ||
        (document === 'README.md' && path === 'CONTRIBUTING.md');
      expect(
        [...linked, ...named].filter((path) => !isThere(path)),
        document,
      ).toEqual([]);
    }
  });

  it('the third-party licenses → the unchanged license of every bundled library', async () => {
    const text = await readFile(join(root, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    const named = [...text.matchAll(/^## (\S+)$/gm)].map(([, name = '']) => name);
    const folders = await listBundledLibraries();
    expect(named).toEqual(
      [...new Set(folders.map((folder) => folder.replace(/.*node_modules\//, '')))].sort(),
    );
    for (const folder of folders) {
      const file =
        (await readdir(join(root, folder))).find((entry) => /^licen[cs]e([.-]|$)/i.test(entry)) ?? '';
      const terms = (await readFile(join(root, folder, file), 'utf8')).replaceAll('\r\n', '\n').trim();
      expect(text, folder).toContain(terms);
    }
  });

  it('ES modules → import their libraries, so that users get updates of the libraries', async () => {
    const code = await scripts('.js');
    for (const name of Object.keys(manifest.dependencies)) expect(code).toContain(`from "${name}"`);
  });

  it('CommonJS → requires no library that is ESM only', async () => {
    const code = await scripts('.cjs');
    const libraries = new Set([...code.matchAll(/\brequire\("([^."][^"]*)"\)/g)].map(([, name]) => name));
    expect([...libraries].filter((name) => !name?.startsWith('node:')).sort()).toEqual([
      '@opentelemetry/api',
      'msw',
      'zod',
    ]);
  });

  it('a class of the package → keeps its name, because stack traces show it', async () => {
    expect((await scripts('.js')).match(/class _\w+/g)).toBe(null);
  });

  it.each(['.d.ts', '.d.cts'])(
    'declarations (%s) → name no document that is not packed',
    async (extension) => {
      expect(
        (await scripts(extension)).match(
          /.*(?:design\.md|public contract|CONTRIBUTING\.md|bench\/|examples\/).*/g,
        ),
      ).toBe(null);
    },
  );

  it('a hover over a field of a record → the name of its type, and its comment', () => {
    const hovers = readHovers(HOVERED);
    expect(hovers.get('event.occurrenceDatetime')?.[1]).toMatch(/Use `sortEvents`, never\s+`new Date`/);
    expect(hovers.get('message.tracker')?.[0]).toBe('(property) tracker: WebhookTracker');
    expect(hovers.get('message.tracker.isSubscribed')?.[1]).toMatch(/^False once the tracker is archived/);
    expect(hovers.get('message.events')?.[0]).toBe('(property) events: WebhookEvent[]');
    expect(hovers.get('tracking.shipment')?.[0]).toBe('(property) shipment?: Shipment | null | undefined');
    expect(hovers.get('input.courierCode')?.[1]).toMatch(/^Up to three courier codes/);
    expect(hovers.get('client.trackers.results')?.[0]).toMatch(/\): ApiPromise<Tracking>$/);
  });

  it('tracking-client/events for a browser → at most 7 kB, with no library and no module of Node', async () => {
    const { inputs, bytes } = await bundleFor({ platform: 'browser' }, 'tracking-client/events');
    expect(inputs.filter((path) => !/^(?:dist\/|<stdin>)/.test(path))).toEqual([]);
    expect(bytes).toBeLessThanOrEqual(7_000);
  });

  it('the functions for shipments → at most 3 kB beside those that order events, from sources of events only', async () => {
    const ordering = ['sortEvents', 'latestEvent', 'isNewerEvent', 'parseOccurrenceDatetime'];
    const forShipments = ['advanceStatus', 'courierOf', 'daysInTransit', 'deliveryEstimate'];
    const names = [...ordering, ...forShipments, 'describeMilestone'];
    const bundle = (some: readonly string[]) =>
      bundleFor({ platform: 'browser' }, 'tracking-client/events', some);
    const [all, older] = [await bundle(names), await bundle(ordering)];
    expect(all.bytes - older.bytes).toBeLessThanOrEqual(3_000);
    expect((await listSources(all.inputs)).filter((name) => !name.startsWith('src/events/'))).toEqual([]);
  });

  it('tracking-client/opentelemetry → at most 17 kB beside its libraries, without the client', async () => {
    const external = ['zod', '@opentelemetry/api', 'node:*'];
    const { inputs, bytes } = await bundleFor({ external }, 'tracking-client/opentelemetry');
    const sources = await listSources(inputs);
    expect(sources).toContain('src/opentelemetry/calls.ts');
    expect(sources.filter((name) => /^src\/(webhooks|limiter|http|client)/.test(name))).toEqual([]);
    expect(bytes).toBeLessThanOrEqual(17_000);
  });

  it.each([
    ['import', "import { TrackingClient } from 'tracking-client';"],
    ['require', "const { TrackingClient } = require('tracking-client');"],
  ])('an error that nobody catches, %s → names class, URL and place in under 2 kB', (load, line) => {
    const code = `${line}
      const options = { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key', retry: false };
      new TrackingClient(options).couriers.list();`;
    const type = load === 'import' ? 'module' : 'commonjs';
    const { status, stderr } = spawnSync(process.execPath, [`--input-type=${type}`, '--eval', code], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).not.toMatch(/^node:internal\/deps\/undici/);
    expect(stderr).toContain('ConnectionError: GET http://127.0.0.1:1/v1/couriers got no response: ');
    expect(stderr).toMatch(/^ {4}at .*\[eval1?\]:3:/m);
    expect(Buffer.byteLength(stderr)).toBeLessThan(2_000);
  });

  it.each(['0', '{}'])(
    'a response of 8 MiB that is a list of wrong items, %s → rejects with 200 MiB of heap, at most 2 s later than JSON.parse',
    async (item) => {
      const measured = await runCode(`
        import { TrackingClient } from 'tracking-client';
        const items = Array(Math.floor(2 ** 23 / ${item.length + 1})).fill('${item}').join();
        const headers = { 'content-type': 'application/json' };
        const body = '{"data":{"couriers":[' + items + ']}}';
        const fetch = async () => new Response(body, { headers });
        const options = { baseUrl: 'http://127.0.0.1:1', apiKey: 'key', fetch, invalidResponse: 'throw' };
        const client = new TrackingClient(options);
        const [cpu, { heapUsed }] = [process.cpuUsage(), process.memoryUsage()];
        const { name } = await client.couriers.list().catch((error) => error);
        const call = process.cpuUsage(cpu);
        const heapMiB = (process.memoryUsage().heapUsed - heapUsed) / 2 ** 20;
        const beforeParse = process.cpuUsage();
        JSON.parse(body);
        const parse = process.cpuUsage(beforeParse);
        const ownSeconds = (call.user + call.system - parse.user - parse.system) / 1e6;
        console.log(JSON.stringify({ name, ownSeconds, heapMiB }));
      `);
      const { name, ownSeconds, heapMiB } = z
        .object({ name: z.string(), ownSeconds: z.number(), heapMiB: z.number() })
        .parse(measured);
      expect(name).toBe('ResponseValidationError');
      expect(ownSeconds).toBeLessThan(2);
      expect(heapMiB).toBeLessThan(200);
    },
  );

  it('the unpacked package → at most 1.9 MB, and 183 kB for the programs with their libraries', () => {
    const programs = packed.files.filter(({ path }) => path.startsWith('dist/cli/'));
    const programsSize = programs.reduce((sum, { size }) => sum + size, 0);
    expect(programs).not.toEqual([]);
    expect(programsSize).toBeLessThanOrEqual(183_000);
    expect(packed.unpackedSize - programsSize).toBeLessThanOrEqual(1_900_000);
  });

  it('each entry point, imported and required → the same exported names', async () => {
    const names = await runCode(`
      import { createRequire } from 'node:module';
      const require = createRequire(import.meta.url);
      const list = async (entry) => [Object.keys(await import(entry)).sort(), Object.keys(require(entry)).sort()];
      console.log(JSON.stringify(await Promise.all(${JSON.stringify(entries)}.map(list))));
    `);
    for (const [imported, required] of z
      .array(z.array(z.array(z.string())))
      .length(entries.length)
      .parse(names)) {
      expect(imported).not.toEqual([]);
      expect(imported).toEqual(required);
    }
  });

  it.each([
    ['import', 'await import'],
    ['require', "(await import('node:module')).createRequire(import.meta.url)"],
  ])('%s of two entry points → one class of each error between them', async (_name, load) => {
    const isSame = await runCode(`
      const load = async (name) => ${load}(name);
      const [root, webhooks] = [await load('tracking-client'), await load('tracking-client/webhooks')];
      console.log(JSON.stringify(Object.getPrototypeOf(webhooks.WebhookParseError) === root.TrackingError));
    `);
    expect(isSame).toBe(true);
  });

  it('the commands of the quickstart as written → a timeline with new events within 20 seconds', async () => {
    await installPacked(join(scratch, 'tracking-client.tgz'), scratch);
    await playQuickstart(scratch);
  }, 90_000);
});

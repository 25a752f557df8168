// Compiles an app that uses every entry point against the packed package, with each TypeScript under test/typescript, in
// every module mode, and with the declarations of all libraries checked too. Names of TypeScript lines as arguments run
// only these. Ends with the count of combinations.
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chosen } from './support/chosen.ts';
import { forEach } from './support/for-each.ts';
import { install } from './support/install.ts';
import { run } from './support/run.ts';
import { Tally } from './support/tally.ts';
import { withTarball } from './support/with-tarball.ts';

const APPS = fileURLToPath(new URL('../test/typescript', import.meta.url));
/** What is compiled. Each other folder names a TypeScript, and the libraries of its time. */
const SOURCES = 'src';
/** The native compiler takes a second where the others take ten, so it gets every mode in every setting. */
const NATIVE_LINE = '7';
const AT_ONCE = 2;

interface Setting {
  readonly name: string;
  readonly options: { readonly lib: readonly string[]; readonly exactOptionalPropertyTypes: boolean };
  /** Sources that only the other setting compiles. */
  readonly without: readonly string[];
}

const STRICTEST: Setting = {
  name: 'exact optional properties, no DOM',
  options: { lib: ['ES2022'], exactOptionalPropertyTypes: true },
  // The types of MSW itself need the DOM.
  without: ['msw.mts', 'msw.cts'],
};

const WITH_MSW: Setting = {
  name: 'DOM, MSW',
  options: { lib: ['ES2022', 'DOM', 'DOM.Iterable'], exactOptionalPropertyTypes: false },
  without: [],
};

interface Mode {
  readonly module: string;
  readonly moduleResolution: string;
  /** What the slower compilers compile in this mode. */
  readonly settings: readonly Setting[];
  /** Sources that this mode has no syntax for. */
  readonly without: readonly string[];
  /** The lines that know the mode. Default: all. */
  readonly lines?: readonly string[];
}

const MODES: readonly Mode[] = [
  { module: 'node16', moduleResolution: 'node16', settings: [STRICTEST], without: [] },
  { module: 'nodenext', moduleResolution: 'nodenext', settings: [WITH_MSW], without: [] },
  { module: 'preserve', moduleResolution: 'bundler', settings: [STRICTEST], without: [] },
  // Finds the same declarations as `preserve`. It has no `import … = require(…)`.
  { module: 'esnext', moduleResolution: 'bundler', settings: [], without: ['required.cts'] },
  // What TypeScript 5 takes by itself for `commonjs`, so many apps have it; it reads `typesVersions`, not `exports`.
  {
    module: 'commonjs',
    moduleResolution: 'node10',
    settings: [STRICTEST],
    without: [],
    lines: ['5.5', '5.9'],
  },
];

interface Combination {
  readonly line: string;
  readonly mode: Mode;
  readonly setting: Setting;
}

interface Exception {
  readonly file: string;
  readonly reason: string;
}

/** What cannot compile because of others, whatever this package does. */
function exceptionsOf({ line, mode, setting }: Combination): Exception[] {
  return line === NATIVE_LINE && mode.module === 'node16' && setting === WITH_MSW
    ? [{ file: 'msw.cts', reason: 'MSW 3 is ESM only, and `node16` lets no CommonJS require that' }]
    : [];
}

function combinationsOf(line: string): Combination[] {
  const settingsOf = (mode: Mode) => (line === NATIVE_LINE ? [STRICTEST, WITH_MSW] : mode.settings);
  const known = MODES.filter((mode) => mode.lines?.includes(line) ?? true);
  return known.flatMap((mode) => settingsOf(mode).map((setting) => ({ line, mode, setting })));
}

/** Installs what a line needs, and puts every source down twice: as a module and as CommonJS. */
async function prepare(line: string, folder: string): Promise<void> {
  await cp(join(APPS, line), folder, { recursive: true });
  for (const file of await readdir(join(APPS, SOURCES))) {
    const kinds = file.endsWith('.cts') ? ['cts'] : ['mts', 'cts'];
    for (const kind of kinds)
      await cp(join(APPS, SOURCES, file), join(folder, SOURCES, file.replace(/c?ts$/, kind)));
  }
  const { isGood, output } = await install(folder);
  if (!isGood)
    throw new Error(`Expected the libraries of TypeScript ${line} to be installed, got\n${output}`);
}

async function compile(combination: Combination, scratch: string, tally: Tally): Promise<void> {
  const startedAt = performance.now();
  const { line, mode, setting } = combination;
  const { module, moduleResolution } = mode;
  const folder = join(scratch, line);
  const exceptions = exceptionsOf(combination);
  const without = [...mode.without, ...setting.without, ...exceptions.map(({ file }) => file)];
  const compilerOptions = {
    ...setting.options,
    module,
    moduleResolution,
    target: 'ES2022',
    strict: true,
    // As `tsc --init` sets it; the declarations of zod need it in `commonjs`.
    esModuleInterop: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
  };
  const exclude = without.map((file) => `${SOURCES}/${file}`);
  const project = join(folder, `${module}-${setting.options.exactOptionalPropertyTypes}.json`);
  await writeFile(project, JSON.stringify({ compilerOptions, include: [SOURCES], exclude }));
  const compiler = join(folder, 'node_modules', 'typescript');
  const { version }: { version: string } = JSON.parse(await readFile(join(compiler, 'package.json'), 'utf8'));
  const compiled = await run('node', [join(compiler, 'bin', 'tsc'), '--project', project], { cwd: folder });
  const title = `TypeScript ${version}  ${module.padEnd(8)}  ${setting.name}`;
  tally.ran(title, compiled, startedAt);
  for (const { file, reason } of exceptions) tally.skipped(`${title}, ${file}: ${reason}`);
}

const folders = (await readdir(APPS, { withFileTypes: true })).filter((entry) => entry.isDirectory());
const all = folders.map(({ name }) => name).filter((name) => name !== SOURCES);
const lines = chosen(all.sort(), process.argv.slice(2));
const tally = new Tally();
await withTarball(async (scratch) => {
  await forEach(lines, AT_ONCE, (line) => prepare(line, join(scratch, line)));
  await forEach(lines.flatMap(combinationsOf), AT_ONCE, (combination) =>
    compile(combination, scratch, tally),
  );
});
tally.end();

// Compiles an app that uses every entry point against the packed package, with each TypeScript under test/typescript, in
// every module mode, and with the declarations of all libraries checked too. Names of TypeScript lines as arguments run
// only these. Ends with the count of combinations.
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chosen, endRun, forEach, install, noteRun, noteSkipped, withTarball } from './support/packed.ts';
import { run } from './support/run.ts';

const APPS = fileURLToPath(new URL('../test/typescript', import.meta.url));
/** What is compiled. Each other folder names a TypeScript, and the libraries of its time. */
const SOURCES = 'src';
/** The native compiler takes a second where the others take ten, so it gets every mode in every setting. */
const NATIVE_LINE = '7';

const STRICTEST = {
  name: 'exact optional properties, no DOM',
  options: { lib: ['ES2022'], exactOptionalPropertyTypes: true },
  // The types of MSW itself need the DOM.
  without: ['msw.mts', 'msw.cts'],
};
const WITH_MSW = {
  name: 'DOM, MSW',
  options: { lib: ['ES2022', 'DOM', 'DOM.Iterable'], exactOptionalPropertyTypes: false },
  without: [],
};

/** The module modes, each with the setting that the slower compilers compile in it. */
const MODES = [
  { module: 'node16', moduleResolution: 'node16', setting: STRICTEST },
  { module: 'nodenext', moduleResolution: 'nodenext', setting: WITH_MSW },
  { module: 'preserve', moduleResolution: 'bundler', setting: STRICTEST },
  // Finds the same declarations as `preserve`. It has no `import … = require(…)`.
  { module: 'esnext', moduleResolution: 'bundler', without: ['required.cts'] },
  // What TypeScript 5 takes by itself for `commonjs`, so many apps have it; it reads `typesVersions`, not `exports`.
  { module: 'commonjs', moduleResolution: 'node10', setting: STRICTEST, lines: ['5.5', '5.9'] },
];

const combinations = MODES.flatMap((mode) =>
  [STRICTEST, WITH_MSW].map((setting) => ({
    mode,
    setting,
    isFor: (line: string) =>
      (mode.lines?.includes(line) ?? true) && (line === NATIVE_LINE || setting === mode.setting),
  })),
);

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

async function compile(
  line: string,
  { mode, setting }: (typeof combinations)[number],
  folder: string,
): Promise<void> {
  const startedAt = performance.now();
  const { module, moduleResolution } = mode;
  // `skipLibCheck` off: our declarations count. `esModuleInterop` as `tsc --init` sets it; those of zod need it in `commonjs`.
  const compilerOptions = {
    ...setting.options,
    module,
    moduleResolution,
    skipLibCheck: false,
    esModuleInterop: true,
  };
  const other = { target: 'ES2022', strict: true, noEmit: true, types: ['node'] };
  const needsNewerMode = line === NATIVE_LINE && module === 'node16' && setting === WITH_MSW;
  const without = [...(mode.without ?? []), ...setting.without, ...(needsNewerMode ? ['msw.cts'] : [])];
  const project = {
    compilerOptions: { ...compilerOptions, ...other },
    include: [SOURCES],
    exclude: without.map((file) => `${SOURCES}/${file}`),
  };
  const file = join(folder, `${module}-${setting.options.exactOptionalPropertyTypes}.json`);
  await writeFile(file, JSON.stringify(project));
  const compiler = join(folder, 'node_modules', 'typescript');
  const { version }: { version: string } = JSON.parse(await readFile(join(compiler, 'package.json'), 'utf8'));
  const compiled = await run('node', [join(compiler, 'bin', 'tsc'), '--project', file], { cwd: folder });
  const title = `TypeScript ${version}  ${module.padEnd(8)}  ${setting.name}`;
  noteRun(title, compiled, startedAt);
  if (needsNewerMode)
    noteSkipped(`${title}, msw.cts: MSW 3 is ESM only, and \`node16\` lets no CommonJS require that`);
}

const folders = (await readdir(APPS, { withFileTypes: true })).filter((entry) => entry.isDirectory());
const all = folders.map(({ name }) => name).filter((name) => name !== SOURCES);
const lines = chosen(all.sort(), process.argv.slice(2));
await withTarball(async (scratch) => {
  await forEach(lines, (line) => prepare(line, join(scratch, line)));
  const jobs = lines.flatMap((line) =>
    combinations.filter(({ isFor }) => isFor(line)).map((combination) => ({ line, combination })),
  );
  await forEach(jobs, ({ line, combination }) => compile(line, combination, join(scratch, line)));
});
endRun();

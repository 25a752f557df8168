// `npm run test:typescript` compiles `src` once as modules (`.mts`) and once as CommonJS (`.cts`), with each TypeScript of this
// table and `skipLibCheck: false`, so the declarations of this package and of all libraries are checked as well.
//
// Not compiled, because no version of this package could change it:
// - `msw` without the DOM: its own declarations need `lib: ["DOM"]`. Nothing else here does.
// - `msw` 3, and `msw` 2.12 or later, required in the mode `node16`: they are ESM, or import it, and this mode lets no CommonJS
//   require ESM.
// - The mode `esnext` with `bundler`: it finds declarations as `preserve` does.

/** Compiler options of the modes. The mode of TypeScript 5 without any options, `commonjs`, reads `typesVersions`, not `exports`. */
const MODULES = {
  commonjs: { module: 'commonjs', moduleResolution: 'node10' },
  node16: { module: 'node16', moduleResolution: 'node16', declaration: true },
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  preserve: { module: 'preserve', moduleResolution: 'bundler' },
};

type Mode = keyof typeof MODULES;

export interface Line {
  readonly typescript: string;
  readonly nodeTypes: string;
  readonly msw: string;
  readonly modes: readonly (Mode | `${Mode}-msw`)[];
}

export const LINES: Readonly<Record<string, Line>> = {
  '5.5': {
    typescript: '~5.5.4',
    // Version 26 needs TypeScript 5.6.
    nodeTypes: '^20.19.43',
    // The CommonJS declarations of later versions import a library that is ESM only (error TS1479 in `node16`, and before
    // TypeScript 5.8 in `nodenext`, too).
    msw: '~2.11.6',
    modes: ['node16', 'nodenext-msw', 'preserve', 'commonjs'],
  },
  '5.9': {
    typescript: '~5.9.3',
    nodeTypes: '^22.19.0',
    msw: '^2.15.0',
    modes: ['node16', 'nodenext-msw', 'preserve', 'commonjs'],
  },
  '6': {
    typescript: '^6.0.3',
    nodeTypes: '^24.0.0',
    msw: '^3.0.5',
    modes: ['node16', 'nodenext-msw', 'preserve'],
  },
  // This compiler takes a second where the others take ten, so it gets the most modes.
  '7': {
    typescript: '^7.0.2',
    nodeTypes: '^26.0.0',
    msw: '^3.0.5',
    modes: ['node16', 'nodenext', 'nodenext-msw', 'preserve', 'preserve-msw'],
  },
};

/** Builds the `package.json` of a line. */
export function buildManifest({ typescript, nodeTypes, msw }: Line): object {
  const libraries = {
    '@opentelemetry/api': '^1.9.0',
    '@types/node': nodeTypes,
    msw,
    typescript,
    zod: '^4.6.7',
  };
  const dependencies = { 'tracking-client': 'file:../tracking-client.tgz', ...libraries };
  return { private: true, type: 'module', dependencies };
}

/** Builds the `tsconfig.json` of a mode. */
export function buildConfig(mode: string): object {
  const hasMsw = mode.endsWith('-msw');
  const compilerOptions = {
    target: 'ES2022',
    lib: hasMsw ? ['ES2022', 'DOM', 'DOM.Iterable'] : ['ES2022'],
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: !hasMsw,
    esModuleInterop: true,
    skipLibCheck: false,
    noEmit: true,
    // Safe cast: a mode is the name of a module setting, and perhaps -msw.
    ...MODULES[mode.replace('-msw', '') as Mode],
  };
  return { compilerOptions, include: ['src'], exclude: hasMsw ? [] : ['src/msw.*'] };
}

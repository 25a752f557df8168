import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A text to check, and its place. */
export interface PlacedText {
  readonly place: string;
  /** The path under which other snippets import it, relative to its folder. Default: none. */
  readonly path?: string;
  readonly code: string;
}

/** The settings of a strict Node project, with the package's own names in place of an installed package. */
function settings(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile);
  return {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts'],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    skipLibCheck: true,
    noEmit: true,
    // The package's own sources import each other by the names of their files.
    allowImportingTsExtensions: true,
    baseUrl: ROOT,
    paths: config.compilerOptions.paths,
  };
}

/** Type-checks all snippets at once, each as a module of its own, and returns the compiler's messages. */
export function complaintsAbout(snippets: readonly PlacedText[]): string[] {
  const files = new Map(
    snippets.map((snippet, index) => [`${ROOT}readme/${snippet.path ?? `${index}.ts`}`, snippet]),
  );
  const options = settings();
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.getCurrentDirectory = () => ROOT;
  host.fileExists = (name) => files.has(name) || fileExists(name);
  // The compiler would skip folders that exist in memory only.
  host.directoryExists = (name) => name.startsWith(`${ROOT}readme/`) || ts.sys.directoryExists(name);
  host.readFile = (name) => files.get(name)?.code ?? readFile(name);
  host.getSourceFile = (name, version, ...rest) => {
    const code = files.get(name)?.code;
    return code === undefined
      ? getSourceFile(name, version, ...rest)
      : ts.createSourceFile(name, code, version, true);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  return [...files].flatMap(([name, { place }]) => {
    const source = program.getSourceFile(name);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ start = 0, messageText }) => {
      const line = source?.getLineAndCharacterOfPosition(start).line ?? 0;
      return `${place} + ${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
  });
}

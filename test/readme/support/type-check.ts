import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The compiler that is written in Go: it takes a third of the time. */
const COMPILER = join(ROOT, 'node_modules/typescript-native/bin/tsc');

/** A text to check, and its place. */
export interface PlacedText {
  readonly place: string;
  /** The path under which other snippets import it, relative to its folder. Default: none. */
  readonly path?: string;
  readonly code: string;
}

/** The settings of a strict Node project. Without `paths`, the package is what the build wrote, as in a user's app. */
const SETTINGS = {
  extends: '../../tsconfig.json',
  compilerOptions: {
    paths: {},
    lib: ['es2023'],
    noPropertyAccessFromIndexSignature: false,
    erasableSyntaxOnly: false,
  },
  include: ['**/*.ts'],
};

/** Type-checks all snippets at once, each as a module of its own, and returns the compiler's messages. */
export function complaintsAbout(snippets: readonly PlacedText[]): string[] {
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.tmp', 'types-'));
  try {
    const places = new Map<string, string>();
    for (const [index, { place, path = `${index}.ts`, code }] of snippets.entries()) {
      places.set(path, place);
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), code);
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(SETTINGS));
    const { stdout } = spawnSync(
      process.execPath,
      [COMPILER, '--noEmit', '--pretty', 'false', '-p', folder],
      {
        cwd: folder,
        encoding: 'utf8',
      },
    );
    const found = stdout.matchAll(/^(.+)\((\d+),\d+\): error (.*(?:\n .*)*)/gm);
    return [...found].flatMap(([, path = '', line, message]) => {
      return [`${places.get(path) ?? path} + ${Number(line) - 1} ${message}`];
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

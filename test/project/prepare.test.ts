// Runs the script `prepare` of package.json in folders of its own, in which the build only notes that it ran.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const SCRIPT = fileURLToPath(new URL('../../scripts/prepare.js', import.meta.url));
const BUILD = `echo built >> builds.log && echo 'on standard output'`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'prepare-'));
  write('package.json', JSON.stringify({ type: 'module', scripts: { build: BUILD } }), 1);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes a file that is as old as if it had been written at this second. */
function write(path: string, text: string, second: number): void {
  mkdirSync(join(folder, dirname(path)), { recursive: true });
  writeFileSync(join(folder, path), text);
  setTime(path, second);
}

function setTime(path: string, second: number): void {
  utimesSync(join(folder, path), second, second);
}

/** A clone with installed compilers, whose sources are older than its build. */
function makeBuiltClone(): void {
  makeClone();
  for (const name of ['typescript-native', 'tsup']) write(`node_modules/${name}/package.json`, '{}', 1);
  write('dist/index.js', '', 10);
  write('dist/index.cjs', '', 12);
  for (const path of ['src/http', 'src', 'package.json']) setTime(path, 5);
  setTime('dist', 12);
}

/** A clone without installed packages. */
function makeClone(): void {
  mkdirSync(join(folder, 'scripts'));
  cpSync(SCRIPT, join(folder, 'scripts/prepare.js'));
  write('src/index.ts', '', 1);
  write('src/http/send.ts', '', 1);
}

function prepare(): { status: number | null; stdout: string; stderr: string; builds: number } {
  const { status, stdout, stderr } = spawnSync(manifest.scripts.prepare, {
    cwd: folder,
    shell: true,
    encoding: 'utf8',
  });
  let log = '';
  try {
    log = readFileSync(join(folder, 'builds.log'), 'utf8');
  } catch {
    // No build has run.
  }
  return { status, stdout, stderr, builds: log.split('built').length - 1 };
}

const NOTHING = { status: 0, stdout: '', stderr: '', builds: 0 };

describe('nothing to build with', () => {
  test('only package.json, as in a layer of a container image → does nothing', () => {
    expect(prepare()).toEqual(NOTHING);
  });

  test('a packed package, which has no sources → does nothing', () => {
    write('dist/index.js', '', 1);
    expect(prepare()).toEqual(NOTHING);
  });

  test('a clone without development dependencies → says so on standard error, exit code 0', () => {
    makeClone();
    const { stderr, ...rest } = prepare();
    expect(rest).toEqual({ status: 0, stdout: '', builds: 0 });
    expect(stderr).toMatch(/^tracking-client was not built, because .* not installed\.\n$/);
  });
});

describe('a clone with development dependencies', () => {
  beforeEach(makeBuiltClone);

  test('sources older than the build → does nothing', () => {
    expect(prepare()).toEqual(NOTHING);
  });

  test.each<[string, () => void]>([
    ['no build', () => rmSync(join(folder, 'dist'), { recursive: true })],
    ['a newer source', () => setTime('src/http/send.ts', 20)],
    ['a removed source', () => setTime('src/http', 20)],
    ['a source in the root that was removed', () => setTime('src', 20)],
    ['a newer package.json', () => setTime('package.json', 20)],
    ['newer settings of the build', () => write('tsup.config.ts', '', 20)],
    ['a source that was changed during the build', () => setTime('src/index.ts', 11)],
  ])('%s → builds once, with nothing on standard output', (_title, change) => {
    change();
    expect(prepare()).toMatchObject({ status: 0, stdout: '', builds: 1 });
  });

  test('a build that fails → the same exit code', () => {
    write('package.json', JSON.stringify({ type: 'module', scripts: { build: 'exit 3' } }), 20);
    expect(prepare()).toMatchObject({ status: 3, stdout: '' });
  });
});

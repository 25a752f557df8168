// Runs `npm pack` in folders of its own, in which the build only notes that it ran.
import { spawn, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const BUILD = 'echo built >> builds.log && mkdir -p dist && touch dist/index.js';
const COMPILERS = ['typescript-native', 'tsup'];
const { prepare, prepack, postpack } = manifest.scripts;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pack-'));
  for (const name of ['src', 'scripts', 'app']) mkdirSync(join(folder, name));
  for (const name of COMPILERS)
    for (const path of ['compilers', 'node_modules']) {
      mkdirSync(join(folder, path, name), { recursive: true });
      writeFileSync(join(folder, path, name, 'package.json'), JSON.stringify({ name, version: '1.0.0' }));
    }
  writeFileSync(join(folder, 'src/index.ts'), '');
  for (const name of ['prepare', 'prepack', 'postpack'])
    copyFileSync(
      fileURLToPath(new URL(`../../scripts/${name}.js`, import.meta.url)),
      join(folder, `scripts/${name}.js`),
    );
  writeManifest(BUILD);
});
afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

function writeManifest(build: string): void {
  const scripts = { prepare, prepack, postpack, build };
  const devDependencies = Object.fromEntries(COMPILERS.map((name) => [name, `file:compilers/${name}`]));
  const fields = {
    name: 'packed',
    version: '1.0.0',
    type: 'module',
    files: ['dist'],
    scripts,
    devDependencies,
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(fields));
  utimesSync(join(folder, 'package.json'), 5, 5);
}

/** The text and the time of package.json. */
function readManifest() {
  const path = join(folder, 'package.json');
  return { text: readFileSync(path, 'utf8'), writtenAt: statSync(path).mtimeMs };
}

function npm(...args: readonly string[]) {
  return spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
}

function readPacked(): unknown {
  const tar = spawnSync('tar', ['-xzOf', 'packed-1.0.0.tgz', 'package/package.json'], { cwd: folder });
  return JSON.parse(tar.stdout.toString());
}

function countBuilds(): number {
  const path = join(folder, 'builds.log');
  return existsSync(path) ? readFileSync(path, 'utf8').split('built').length - 1 : 0;
}

test('npm pack --json → JSON, a tarball with the build and without `prepare`, package.json and its time as before', () => {
  const before = readManifest();
  const { status, stdout } = npm('pack', '--json');
  expect(status).toBe(0);
  expect(JSON.stringify(JSON.parse(stdout))).toContain('dist/index.js');
  expect(readPacked()).toMatchObject({ name: 'packed', files: ['dist'], scripts: { build: BUILD } });
  expect(Object.keys(Object(readPacked()).scripts)).toEqual(['build']);
  expect(readManifest()).toEqual(before);
  npm('pack');
  expect([countBuilds(), readManifest()]).toEqual([1, before]);
});

test('npm install and npm ci in a clone → built', () => {
  expect(npm('install').status).toBe(0);
  expect(countBuilds()).toBe(1);
  rmSync(join(folder, 'dist'), { recursive: true });
  expect(npm('ci').status).toBe(0);
  expect(countBuilds()).toBe(2);
});

test('npm install of a git URL → built', () => {
  writeFileSync(join(folder, '.gitignore'), 'node_modules\ndist\napp\n');
  const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: folder });
  git('init', '--quiet');
  git('add', '--all');
  git('-c', 'user.name=test', '-c', 'user.email=test@example.com', 'commit', '--quiet', '--message=Copy');
  const app = join(folder, 'app');
  writeFileSync(join(app, 'package.json'), '{ "private": true }');
  spawnSync('npm', ['install', `git+file://${folder}`], { cwd: app });
  expect(existsSync(join(app, 'node_modules/packed/dist/index.js'))).toBe(true);
});

test('a build that fails → npm pack fails, package.json as before', () => {
  writeManifest('exit 3');
  const before = readManifest();
  expect(npm('pack').status).not.toBe(0);
  expect(readManifest()).toEqual(before);
});

test('a tarball that cannot be written → npm pack fails, package.json as before', async () => {
  const before = readManifest();
  expect(npm('pack', '--pack-destination', join(folder, 'nowhere')).status).not.toBe(0);
  await vi.waitFor(() => expect(readManifest()).toEqual(before), { timeout: 60_000 });
});

test('npm killed while it packs → package.json as before', async () => {
  const before = readManifest();
  const child = spawn('npm', ['pack'], { cwd: folder, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('exit', resolve));
  await vi.waitFor(() => expect(readManifest().text).not.toBe(before.text), { timeout: 60_000, interval: 1 });
  child.kill('SIGKILL');
  await ended;
  await vi.waitFor(() => expect(readManifest()).toEqual(before), { timeout: 60_000 });
});

// Makes a release ready: looks whether the version is told everywhere, builds, runs every check there is, and packs.
// Publishing the tarball stays a decision of a person.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { VERSION } from '../src/config/config.ts';

function read(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
}

function stop(why: string): never {
  console.error(`No release: ${why}`);
  process.exit(1);
}

/** Runs a step in front of the reader; the first one that fails ends the release. */
function step(command: string, ...args: readonly string[]): void {
  console.log(`\n> ${command} ${args.join(' ')}`);
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) stop(`\`${command} ${args.join(' ')}\` failed`);
}

const manifest: { name: string; version: string; repository?: unknown } = JSON.parse(read('package.json'));
const [, released = '', date = ''] = /^## (\S+) - (.+)$/m.exec(read('CHANGELOG.md')) ?? [];
if (manifest.version !== VERSION)
  stop(`package.json says ${manifest.version} and src/config/config.ts says ${VERSION}`);
if (released !== VERSION) stop(`the newest entry of CHANGELOG.md is ${released}, not ${VERSION}`);
if (!/^\d{4}-\d{2}-\d{2}$/.test(date))
  stop(`CHANGELOG.md gives ${released} no date but "${date}"; write the day of the release`);
const changed = spawnSync('git', ['status', '--porcelain'], { encoding: 'utf8' }).stdout.trim();
if (changed !== '') stop(`these changes are not committed:\n${changed}`);

step('npm', 'ci');
step('npm', 'test');
step('npm', 'run', 'test:consumers');
step('npm', 'run', 'test:typescript');
step('npm', 'run', 'test:runtimes', '--', '--all', '--print');
step('npm', 'pack', '--ignore-scripts');
if (manifest.repository === undefined)
  console.warn(
    '\npackage.json names no `repository`: the links of README.md to other files will lead nowhere',
  );
console.log(`\nReady: npm publish ${manifest.name}-${manifest.version}.tgz`);

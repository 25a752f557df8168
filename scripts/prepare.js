// npm runs this script after an install in a clone, and after an install from a git URL or a folder; prepack.js runs it before npm
// packs. It builds the package if a source is newer than the build. It is JavaScript, because it must also run where no compiler is
// installed.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';

const COMPILERS = ['node_modules/typescript-native', 'node_modules/tsup'];
/** Everything that decides what the build writes, besides the files in `src`. */
const SETTINGS = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsup.config.ts',
  'scripts/tsconfig.declarations.json',
  'scripts/support/entry-points.ts',
];

/** Lists a folder and all that it contains. The time of a folder changes when a file in it is removed. */
function listFolder(folder) {
  return [folder, ...readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`)];
}

function writtenAt(path) {
  return statSync(path).mtimeMs;
}

function isStale() {
  if (!existsSync('dist')) return true;
  const newest = Math.max(...[...SETTINGS.filter(existsSync), ...listFolder('src')].map(writtenAt));
  // Compare with the oldest file, so that a source that was changed during the build counts as newer.
  return Math.min(...listFolder('dist').map(writtenAt)) < newest;
}

if (existsSync('src') && !COMPILERS.every(existsSync)) {
  console.error('tracking-client was not built, because its development dependencies are not installed.');
} else if (existsSync('src') && isStale()) {
  // Standard output belongs to npm: with `npm pack --json`, it is JSON.
  const { status } = spawnSync('npm run build', { shell: true, stdio: ['ignore', 2, 2] });
  process.exitCode = status ?? 1;
}

// Prepares a release: checks that the version is the same everywhere, audits the dependencies, runs every check and packs,
// with a bill of materials beside the tarball. A person decides whether to publish the tarball. With `--check`, it only checks
// whether a release is possible.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import manifest from '../package.json' with { type: 'json' };
import { VERSION } from '../src/version.ts';
import { IS_PUBLISHED } from './support/published.ts';
import { findObstacles } from './support/release-rules.ts';

const obstacles = findObstacles({
  manifest,
  version: VERSION,
  changelog: readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8'),
  isPublished: IS_PUBLISHED,
  changes: execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }),
});
for (const obstacle of obstacles) console.error(`No release: ${obstacle}`);
if (obstacles.length > 0) process.exit(1);
if (process.argv.includes('--check')) process.exit(0);

const tarball = `${manifest.name}-${manifest.version}.tgz`;
const steps = [
  'ci',
  // The audit runs before the checks, which take minutes. The release also ends if the registry does not respond.
  'audit --omit=dev',
  'audit signatures',
  'run check',
  'run test:consumers',
  'run test:typescript',
  'run test:runtimes -- --all',
  'run test:fuzz -- --minutes 2',
  'pack',
  `exec tsx scripts/audit-package.ts ${tarball}`,
];
for (const step of steps) {
  console.log(`\n> npm ${step}`);
  // `execFileSync` throws when a step fails, which ends the release.
  execFileSync('npm', step.split(' '), { stdio: 'inherit' });
}

console.log(`\nReady: npm publish ${tarball}`);

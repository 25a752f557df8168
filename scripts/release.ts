// Prepares a release: checks that the version is the same everywhere, audits the dependencies, runs every check and packs,
// with a bill of materials beside the tarball. A person decides whether to publish the tarball.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import manifest from '../package.json' with { type: 'json' };
import { VERSION } from '../src/version.ts';

function must(isSo: boolean, why: string): void {
  if (isSo) return;
  console.error(`No release: ${why}`);
  process.exit(1);
}

const changes = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }).trim();
const [, released, date = ''] =
  /^## (\S+)(?: - (.+))?$/m.exec(readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8')) ?? [];
must(manifest.version === VERSION, `package.json has version ${manifest.version}, the client has ${VERSION}`);
must(released === VERSION, `the newest entry of CHANGELOG.md is ${released}, not ${VERSION}`);
must(/^\d{4}-\d{2}-\d{2}$/.test(date), `CHANGELOG.md has "${date}" instead of a date for ${released}`);
must(changes === '', `these changes are not committed:\n${changes}`);
if (!('repository' in manifest))
  console.warn('package.json names no `repository`: the links of README.md to other files will lead nowhere');

const tarball = `${manifest.name}-${manifest.version}.tgz`;
const steps = [
  'ci',
  // The audit runs before the checks, which take minutes. The release also ends if the registry does not respond.
  'audit --omit=dev',
  'audit signatures',
  'test',
  'run test:consumers',
  'run test:typescript',
  'run test:runtimes -- --all',
  'run test:fuzz -- --minutes 2',
  'pack --ignore-scripts',
  `exec tsx scripts/audit-package.ts ${tarball}`,
];
for (const step of steps) {
  console.log(`\n> npm ${step}`);
  // `execFileSync` throws when a step fails, which ends the release.
  execFileSync('npm', step.split(' '), { stdio: 'inherit' });
}

console.log(`\nReady: npm publish ${tarball}`);

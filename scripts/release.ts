// Makes a release ready: looks whether the version is told everywhere, runs every check there is, and packs. Publishing the
// tarball stays a decision of a person.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import manifest from '../package.json' with { type: 'json' };
import { VERSION } from '../src/config/config.ts';

function must(isSo: boolean, why: string): void {
  if (isSo) return;
  console.error(`No release: ${why}`);
  process.exit(1);
}

const changes = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }).trim();
const [, released, date = ''] =
  /^## (\S+)(?: - (.+))?$/m.exec(readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8')) ?? [];
must(manifest.version === VERSION, `package.json says ${manifest.version} and the client says ${VERSION}`);
must(released === VERSION, `the newest entry of CHANGELOG.md is ${released}, not ${VERSION}`);
must(/^\d{4}-\d{2}-\d{2}$/.test(date), `CHANGELOG.md gives ${released} no date but "${date}"`);
must(changes === '', `these changes are not committed:\n${changes}`);
if (!('repository' in manifest))
  console.warn('package.json names no `repository`: the links of README.md to other files will lead nowhere');

const steps = [
  'ci',
  'test',
  'run test:consumers',
  'run test:typescript',
  'run test:runtimes -- --all',
  'pack --ignore-scripts',
];
for (const step of steps) {
  console.log(`\n> npm ${step}`);
  // Throws when the step fails, which ends the release.
  execFileSync('npm', step.split(' '), { stdio: 'inherit' });
}
console.log(`\nReady: npm publish ${manifest.name}-${manifest.version}.tgz`);

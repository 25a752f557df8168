// npm runs this script before it packs, with its process id. The packed package.json must not have the script `prepare`, of which npm
// warns when an app installs the tarball. As npm then does not run `prepare`, this script builds the package first.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

await import('./prepare.js');
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
if (!process.exitCode && manifest.scripts.prepare !== undefined) {
  const original = `.tmp/package.${process.pid}.json`;
  const packed = `.tmp/packed.${process.pid}.json`;
  // The files of these scripts are not in the tarball.
  const { prepare, prepack, postpack, ...scripts } = manifest.scripts;
  mkdirSync('.tmp', { recursive: true });
  // The build is stale if package.json is newer, so the original keeps its time.
  cpSync('package.json', original, { preserveTimestamps: true });
  writeFileSync(packed, `${JSON.stringify({ ...manifest, scripts }, null, 2)}\n`);
  renameSync(packed, 'package.json');
  // If packing fails, npm does not run `postpack`. Other shells than that of npm on Linux and macOS do not know the process id.
  const npm = process.argv[2] ?? '';
  if (/^\d+$/.test(npm))
    spawn(process.execPath, ['scripts/postpack.js', original, npm], {
      detached: true,
      stdio: 'ignore',
    }).unref();
}

// Proves the package as its users get it: packs it, installs the tarball into each app under test/consumers, and runs the
// app's own tests. Names of apps as arguments run only these. Ends with the count of apps.
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chosen } from './support/chosen.ts';
import { install } from './support/install.ts';
import { type Ran, run } from './support/run.ts';
import { installRuntime } from './support/runtimes.ts';
import { Tally } from './support/tally.ts';
import { withTarball } from './support/with-tarball.ts';

const CONSUMERS = fileURLToPath(new URL('../test/consumers', import.meta.url));

/** An app that was tested, or why it was not. */
type Proof = (Ran & { readonly node: string }) | { readonly skipped: string };

interface NodeVersion {
  readonly major: number;
  readonly minor: number;
}

function parseVersion(text: string): NodeVersion {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(text) ?? [];
  return { major: Number(major), minor: Number(minor) };
}

function isAtLeast(version: NodeVersion, wanted: NodeVersion): boolean {
  return version.major > wanted.major || (version.major === wanted.major && version.minor >= wanted.minor);
}

/** Installs and tests one app. */
async function prove(name: string, scratch: string): Promise<Proof> {
  const folder = join(scratch, name);
  await cp(join(CONSUMERS, name), folder, { recursive: true });
  // Every app under test/consumers says which Node it needs.
  const { engines } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const wanted = parseVersion(engines.node);
  let binFolder: string | undefined;
  if (!isAtLeast(parseVersion(process.version), wanted)) {
    const node = await installRuntime('node', String(wanted.major));
    if ('reason' in node)
      return { skipped: `${name} needs Node ${engines.node}; this is ${process.version}, ${node.reason}` };
    binFolder = node.binFolder;
  }
  const installed = await install(folder, { binFolder });
  const tested = installed.isGood ? await run('npm', ['test'], { cwd: folder, binFolder }) : installed;
  const { output } = await run('node', ['--version'], { cwd: folder, binFolder });
  return { ...tested, node: output.trim() };
}

const apps = chosen((await readdir(CONSUMERS)).sort(), process.argv.slice(2));
const tally = new Tally();
await withTarball(async (scratch) => {
  for (const name of apps) {
    const startedAt = performance.now();
    const proof = await prove(name, scratch);
    if ('skipped' in proof) tally.skipped(proof.skipped);
    else tally.ran(`${name.padEnd(18)} Node ${proof.node}`, proof, startedAt);
  }
});
tally.end();

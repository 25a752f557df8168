// Installs a tarball of the package together with the libraries whose code it contains, writes the bill of materials beside
// the tarball, and audits all packages, unless `--no-audit` is given:
// `npx tsx scripts/audit-package.ts tracking-client-0.1.0.tgz`.
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import manifest from '../package.json' with { type: 'json' };

const tarball = resolve(process.argv[2] ?? '');
const materials = tarball.replace(/\.tgz$/, '.cdx.json');
const bundled = await readBundledVersions();
const folder = await mkdtemp(join(tmpdir(), 'tracking-client-audit-'));
try {
  const dependencies = { ...bundled, [manifest.name]: `file:${tarball}` };
  // `npm sbom` refuses a project without a version.
  const app = { private: true, version: manifest.version, dependencies };
  await writeFile(join(folder, 'package.json'), JSON.stringify(app));
  const npm = (command: string) => execFileSync('npm', command.split(' '), { cwd: folder, encoding: 'utf8' });
  npm('install --ignore-scripts --no-audit --no-fund --prefer-offline');
  const bill: Bill = JSON.parse(npm('sbom --sbom-format=cyclonedx'));
  // `npm sbom` uses the name of the folder.
  bill.metadata.component.name = manifest.name;
  const listed = bill.components.map(({ name, version }) => `${name} ${version}`);
  const expected = [...Object.keys(manifest.dependencies), ...Object.keys(bundled)];
  const missing = expected.filter((name) => !bill.components.some((component) => component.name === name));
  if (missing.length > 0) throw new Error(`The bill of materials does not name ${missing.join(', ')}`);
  await writeFile(materials, `${JSON.stringify(bill, null, 2)}\n`);
  console.log(`${materials} names ${listed.length} packages: ${listed.join(', ')}`);
  if (!process.argv.includes('--no-audit')) {
    npm('audit');
    console.log('None of them has a known vulnerability.');
  }
} finally {
  await rm(folder, { recursive: true });
}

interface Bill {
  readonly metadata: { readonly component: { name: string } };
  readonly components: readonly { readonly name: string; readonly version: string }[];
}

/** Reads the libraries whose code is in the tarball; a test compares the list of licences with what the build bundles. */
async function readBundledVersions(): Promise<Record<string, string>> {
  const readText = (path: string) => readFile(new URL(`../${path}`, import.meta.url), 'utf8');
  const names = [...(await readText('THIRD-PARTY-LICENSES.txt')).matchAll(/^## (\S+)$/gm)];
  const versions = names.map(async ([, name = '']) => {
    const { version } = JSON.parse(await readText(`node_modules/${name}/package.json`));
    return [name, version] as const;
  });
  return Object.fromEntries(await Promise.all(versions));
}

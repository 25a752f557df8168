// Proves the package as its users get it: packs it, installs the tarball into each app under test/consumers, and runs the
// app's own tests. Names of apps as arguments run only these. Ends with the count of apps.
import { spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CONSUMERS = join(ROOT, 'test', 'consumers');
/** The name that the apps install. */
const TARBALL = 'tracking-client.tgz';
const INSTALL = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
const COMMAND_TIMEOUT_MS = 300_000;

interface Ran {
  readonly isGood: boolean;
  readonly output: string;
}

/** An app that was tested, or why it was not. */
type Proof = (Ran & { readonly node: string }) | { readonly skipped: string };

interface NodeVersion {
  readonly major: number;
  readonly minor: number;
}

function run(command: string, args: readonly string[], cwd: string, binFolder?: string): Promise<Ran> {
  const { PATH = '', ...rest } = process.env;
  const env = { ...rest, PATH: binFolder === undefined ? PATH : binFolder + delimiter + PATH };
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: COMMAND_TIMEOUT_MS,
    });
    let output = '';
    const collect = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', (error) => resolve({ isGood: false, output: String(error) }));
    child.on('close', (code) => resolve({ isGood: code === 0, output }));
  });
}

/** As `run`, for what all the rest depends on. */
async function mustRun(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { isGood, output } = await run(command, args, cwd);
  if (!isGood) throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
  return output;
}

async function newestChange(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const stats = await Promise.all(names.map((name) => stat(join(folder, name))));
  return Math.max(...stats.map(({ mtimeMs }) => mtimeMs));
}

async function isBuilt(): Promise<boolean> {
  const sources = [
    newestChange(join(ROOT, 'src')),
    stat(join(ROOT, 'tsup.config.ts')).then((s) => s.mtimeMs),
  ];
  // The types are written last, so an unfinished build is not taken for one.
  const built = await stat(join(ROOT, 'dist', 'index.d.cts')).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
  return built > Math.max(...(await Promise.all(sources)));
}

async function pack(scratch: string): Promise<void> {
  if (!(await isBuilt())) await mustRun('npm', ['run', 'build'], ROOT);
  await mustRun('npm', ['pack', '--ignore-scripts', '--pack-destination', scratch], ROOT);
  const name = (await readdir(scratch)).find((file) => file.endsWith('.tgz'));
  if (name === undefined) throw new Error('Expected npm pack to leave a tarball, got none');
  await rename(join(scratch, name), join(scratch, TARBALL));
}

function parseVersion(text: string): NodeVersion {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(text) ?? [];
  return { major: Number(major), minor: Number(minor) };
}

function isAtLeast(version: NodeVersion, wanted: NodeVersion): boolean {
  return version.major > wanted.major || (version.major === wanted.major && version.minor >= wanted.minor);
}

/** Installs Node of another line from the registry; undefined when that does not work here. */
async function installNode({ major }: NodeVersion, scratch: string): Promise<string | undefined> {
  const folder = join(scratch, `node-${major}`);
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  await run('npm', [...INSTALL, `node@${major}`], folder);
  const path = join(folder, 'node_modules', 'node', 'bin', 'node');
  const { isGood } = await run(path, ['--version'], folder);
  return isGood ? dirname(path) : undefined;
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
    binFolder = await installNode(wanted, scratch);
    if (binFolder === undefined) {
      const why = `this is ${process.version}, and node@${wanted.major} could not be installed`;
      return { skipped: `${name} needs Node ${engines.node}; ${why}` };
    }
  }
  const installed = await run('npm', INSTALL, folder, binFolder);
  const tested = installed.isGood ? await run('npm', ['test'], folder, binFolder) : installed;
  const { output } = await run('node', ['--version'], folder, binFolder);
  return { ...tested, node: output.trim() };
}

const chosen = process.argv.slice(2);
const all = (await readdir(CONSUMERS)).sort();
const unknown = chosen.find((name) => !all.includes(name));
if (unknown !== undefined) throw new Error(`Expected one of ${all.join(', ')}, got ${unknown}`);

const count = { passed: 0, failed: 0, skipped: 0 };
const scratch = await mkdtemp(join(tmpdir(), 'tracking-client-consumers-'));
try {
  await pack(scratch);
  for (const name of chosen.length > 0 ? chosen : all) {
    const startedAt = performance.now();
    const proof = await prove(name, scratch);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    if ('skipped' in proof) {
      count.skipped += 1;
      console.log(`skipped: ${proof.skipped}`);
      continue;
    }
    const { isGood, output, node } = proof;
    count[isGood ? 'passed' : 'failed'] += 1;
    console.log(`${isGood ? 'ok    ' : 'FAILED'} ${name.padEnd(18)} ${seconds.padStart(6)} s  Node ${node}`);
    if (!isGood) console.log(output);
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exitCode = count.failed === 0 ? 0 : 1;

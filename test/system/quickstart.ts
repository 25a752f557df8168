// The first thing that a new user does: the blocks of the quickstart in a terminal, with the package installed.
import { spawn } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json' with { type: 'json' };
import { mustRun } from '../../scripts/support/run.ts';
import { parseMarkdown, readDocument } from '../readme/support/documents.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const WAIT_MS = 20_000;

/** Lays a packed package out as npm does when it is installed, without a registry. */
export async function installPacked(tarball: string, folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  await mkdir(join(modules, '.bin'), { recursive: true });
  await mustRun('tar', ['-xzf', tarball, '-C', modules], { cwd: folder });
  await mustRun('mv', ['package', 'tracking-client'], { cwd: modules });
  for (const name of [...Object.keys(manifest.dependencies), 'is-network-error'])
    await symlink(join(ROOT, 'node_modules', name), join(modules, name));
  for (const [name, path] of Object.entries(manifest.bin))
    await symlink(join(modules, 'tracking-client', path), join(modules, '.bin', name));
}

/** A terminal into which lines were pasted. */
export interface PastedLines extends Disposable {
  /** The text on the terminal so far. */
  readonly text: string;
  /** Waits until something was printed, for 20 seconds at most. */
  shows(pattern: RegExp): Promise<void>;
}

/** Runs lines of a shell; disposing of them ends all that they started. */
export function paste(lines: string, folder: string): PastedLines {
  const child = spawn('sh', ['-c', lines], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  return {
    get text() {
      return text;
    },
    async shows(pattern) {
      const endsAt = performance.now() + WAIT_MS;
      while (!pattern.test(text)) {
        if (performance.now() > endsAt) throw new Error(`Expected ${pattern}, got\n${text}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    [Symbol.dispose]() {
      // A negative id means the process group: the shell, npx and the program. A group that has ended throws.
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    },
  };
}

/** Does what the quickstart of the README says, in a folder in which the package is found. Throws if an event does not come. */
export async function playQuickstart(folder: string): Promise<void> {
  const [, quickstart = ''] = readDocument('README.md').split('\n## Quickstart\n');
  const [start, variables, program] = parseMarkdown(quickstart).blocks;
  if ([start?.language, variables?.language, program?.language].join() !== 'sh,sh,ts')
    throw new Error('Expected the quickstart to have the command, the variables and the program');
  const [, file = '', command = ''] = /Save this as `(.+?)` and run `(.+?)`/.exec(quickstart) ?? [];
  await writeFile(join(folder, file), program?.code ?? '');
  using fake = paste(start?.code ?? '', folder);
  await fake.shows(/Ctrl-C stops the service/);
  using timeline = paste(`${variables?.code}${command}`, folder);
  await timeline.shows(/^\S+ Shipping label created\n\S+ Accepted at the post office\n/);
  await fake.shows(/POST +\/public\/v1\/trackers RR123456785CN → 201/);
}

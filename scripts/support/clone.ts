import { cp, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun } from './run.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Makes a new repository with the files of this one, changed and new files included, as if it had just been cloned. */
export async function cloneInto(folder: string): Promise<void> {
  const git = (command: string, cwd: string) => mustRun('git', command.split(' '), { cwd });
  const listed = await git('ls-files --cached --others --exclude-standard --deduplicate', ROOT);
  const deleted = new Set((await git('ls-files --deleted', ROOT)).split('\n'));
  for (const file of listed
    .trim()
    .split('\n')
    .filter((name) => !deleted.has(name))) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await cp(join(ROOT, file), join(folder, file));
  }
  await git('init --quiet', folder);
  await git('add --all', folder);
  await git('-c user.name=test -c user.email=test@example.com commit --quiet --message=Copy', folder);
}

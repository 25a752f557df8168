import { fileURLToPath } from 'node:url';
import { mustRun } from '../../scripts/support/run.ts';

/** Builds the package if a source is newer than the build. The system tests of the documents and of the package use the build. */
export async function setup(): Promise<void> {
  await mustRun('npm', ['run', 'prepare'], { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
}

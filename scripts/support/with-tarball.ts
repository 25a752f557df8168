import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packInto } from './pack.ts';

/** Packs the package into a new folder, calls back with it, and removes it whatever happens. */
export async function withTarball(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'tracking-client-packed-'));
  try {
    await packInto(folder);
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

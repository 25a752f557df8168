import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FakeTrackingService } from 'tracking-client/testing';
import { afterEach, beforeEach } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { connect, makeTerminal } from './make-terminal.ts';

/** Gives each test of a file a folder of its own, and ways to import files in it. */
export function useImportFolder() {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tracking-client-import-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  const findPath = (name = '') => join(folder, name);

  /** Reads the file of failures at its default path; undefined if there is no file. */
  async function readFailures(): Promise<string | undefined> {
    const name = (await readdir(folder)).find((file) => file.includes('.failures-')) ?? 'none';
    return readFile(findPath(name), 'utf8').catch(() => undefined);
  }

  async function importFile(
    path: string,
    flags: string[] = [],
    { fake = connect(), ...screen }: { fake?: FakeTrackingService } & Parameters<typeof makeTerminal>[0] = {},
  ) {
    const recorded = makeTerminal(screen);
    const exitCode = await run(['import', path, ...flags], recorded.terminal);
    return { fake, exitCode, failed: await readFailures(), ...recorded };
  }

  async function importRows(
    csv: string | Buffer,
    flags?: string[],
    options?: Parameters<typeof importFile>[2],
  ) {
    await writeFile(findPath('rows.csv'), csv);
    return importFile(findPath('rows.csv'), flags, options);
  }

  return { findPath, readFailures, importFile, importRows };
}

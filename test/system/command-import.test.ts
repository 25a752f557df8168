// `import` as a process: signals, pipes and disks. What it prints is tested in test/cli/.

import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { buildCsv } from '../support/csv.ts';
import { type BundledCommand, bundleCommand, type StartOptions } from './command.ts';

const NUMBER = 'RR123456785CN';

let cli: BundledCommand;
beforeAll(async () => {
  cli = await bundleCommand();
});
afterAll(() => cli[Symbol.asyncDispose]());

describe('import', () => {
  /** A folder with `rows.csv`, a temporary folder of its own, and a service to import into. */
  async function setUp(csv: string) {
    const folder = await mkdtemp(join(tmpdir(), 'tracking-client-import-'));
    const temporary = join(folder, 'tmp');
    await mkdir(temporary);
    const fake = createFakeTrackingService();
    const server = await fake.listen();
    onTestFinished(async () => {
      await server.close();
      await rm(folder, { recursive: true });
    });
    await writeFile(join(folder, 'rows.csv'), csv);
    const environment = { TRACKING_BASE_URL: server.url, TRACKING_API_KEY: 'hush-hush', TMPDIR: temporary };
    const start = (args: string[], started: StartOptions = {}) =>
      cli.start(['import', ...args], environment, { cwd: folder, ...started });
    const shell = (line: string) => cli.shell(line, environment, { cwd: folder });
    const files = async () => (await readdir(folder)).filter((name) => name !== 'tmp').sort();
    const read = (name = 'none') => readFile(join(folder, name), 'utf8');
    const path = (name: string) => join(folder, name);
    return { fake, temporary, start, shell, files, read, path };
  }

  describe('the file of failures', () => {
    it('a disk that fills up → the summary and the line at which to resume, exit code 1', async () => {
      const { start } = await setUp(`trackingNumber\n${NUMBER}\nx\n`);
      const { output, exitCode } = start(['rows.csv', '--failures', '/dev/full', '--overwrite']);
      expect(await exitCode).toBe(1);
      expect(output.stdout).toMatch(/^2 of 2 rows\n {2}created +1 /);
      expect(output.stderr).toMatch(/Stopped at line 3 of rows\.csv: .*\/dev\/full.*no space left on device/);
      expect(output.stderr).toContain('Run the same command again');
      expect(output.stderr).not.toMatch(/^ +at /m);
    });

    it('a row that no longer fits on the disk → no half row is left in the file', async () => {
      const { shell, files, read } = await setUp(`trackingNumber\n${'x\n'.repeat(60)}`);
      const { output, exitCode } = shell('ulimit -f 4; cli import rows.csv');
      expect(await exitCode).toBe(1);
      expect(output.stderr).toMatch(/Stopped at line \d+ of rows\.csv: .*file too large \(EFBIG\)/);
      const text = await read((await files())[1]);
      expect(text.length).toBeGreaterThan(3000);
      for (const line of text.trimEnd().split('\n').slice(1)) expect(line).toMatch(/^x,\d+,invalid,.*"$/);
    });

    it('--overwrite and a path that is also standard input → refused, the file is unchanged, nothing sent', async () => {
      const { fake, shell, read } = await setUp(buildCsv(2));
      expect(await shell('cli import - --failures rows.csv --overwrite < rows.csv').exitCode).toBe(2);
      expect(await read('rows.csv')).toBe(buildCsv(2));
      expect(fake.requests).toEqual([]);
    });
  });

  describe('sources of rows', () => {
    it('rows on standard input → imported', async () => {
      const { fake, start, files, temporary } = await setUp('');
      const { output, exitCode } = start(['-'], { stdin: `trackingNumber\n${NUMBER}\nx\n` });
      expect(await exitCode).toBe(1);
      expect(fake.trackers).toMatchObject([{ trackingNumber: NUMBER }]);
      expect(output.stdout).toContain('2 of 2 rows\n');
      expect((await files())[0]).toMatch(/^import\.failures-\d{8}-\d{6}-\d{3}\.csv$/);
      expect(await readdir(temporary)).toEqual([]);
    });

    it.each([`<(echo trackingNumber; echo ${NUMBER})`, '/dev/stdin < rows.csv', '- < rows.csv'])(
      '%s → imported',
      async (source) => {
        const { fake, shell } = await setUp(`trackingNumber\n${NUMBER}\n`);
        expect(await shell(`cli import ${source}`).exitCode).toBe(0);
        expect(fake.trackers).toHaveLength(1);
      },
    );

    it('SIGINT while standard input stays open → exit code 130 at once, no file left behind', async () => {
      const { start, temporary } = await setUp('');
      let pipe = { end: () => {} };
      const { child, exitCode } = start(['-'], {
        stdin: (stdin) => {
          pipe = stdin;
          // A pipe cannot hold this much, so the program has begun to read when the write ends.
          stdin.write(`trackingNumber\n${'x\n'.repeat(1_000_000)}`, () => child.kill('SIGINT'));
        },
      });
      expect(await exitCode).toBe(130);
      pipe.end();
      expect(await readdir(temporary)).toEqual([]);
    });
  });

  it('Ctrl-C again and again while a read blocks a thread → the signal ends the process', async () => {
    const { start, shell, path } = await setUp('');
    await shell('mkfifo pipe').exitCode;
    const { child, exitCode } = start(['pipe']);
    // Resolves when the command has opened the other end; then the command waits for bytes that never come.
    const pipe = await open(path('pipe'), 'w');
    const presses = setInterval(() => child.kill('SIGINT'), 100);
    await exitCode;
    clearInterval(presses);
    await pipe.close();
    expect(child.signalCode).toBe('SIGINT');
  });

  it('--json and `| head -1` → the import stops with a message, exit code 1', async () => {
    const { shell } = await setUp(buildCsv(900));
    const { output, exitCode } = shell('cli import rows.csv --json | head -1');
    expect(await exitCode).toBe(1);
    expect(output.stdout.split('\n')).toHaveLength(2);
    expect(output.stderr).toContain('Run the same command again');
    expect(output.stderr).not.toMatch(/^ +at /m);
  });
});

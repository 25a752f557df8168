import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { csvOf } from '../support/csv.ts';
import { type BundledCommand, bundleCommand, type StartOptions } from './command.ts';

const NUMBER = 'RR123456785CN';

describe('tracking-client import', () => {
  let cli: BundledCommand;
  beforeAll(async () => {
    cli = await bundleCommand();
  });
  afterAll(() => cli[Symbol.asyncDispose]());

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
    return { fake, temporary, start, shell, files, read };
  }

  describe('the file of failures', () => {
    it('a disk that fills up → ends with the summary and the line where to go on, exit code 1', async () => {
      const { start } = await setUp(`trackingNumber\n${NUMBER}\nx\n`);
      const { output, exitCode } = start(['rows.csv', '--failures', '/dev/full', '--overwrite']);
      expect(await exitCode).toBe(1);
      expect(output.stdout).toMatch(/^2 of 2 rows\n {2}created +1 /);
      expect(output.stderr).toMatch(/Stopped at line 3 of rows\.csv: .*\/dev\/full.*no space left on device/);
      expect(output.stderr).toContain('Run the same command again');
      expect(output.stderr).not.toMatch(/^ +at /m);
    });

    it('a row that is cut off by the limit of a disk → not left behind half', async () => {
      const { shell, files, read } = await setUp(`trackingNumber\n${'x\n'.repeat(60)}`);
      const { output, exitCode } = shell('ulimit -f 4; cli import rows.csv');
      expect(await exitCode).toBe(1);
      expect(output.stderr).toMatch(/Stopped at line \d+ of rows\.csv: .*file too large \(EFBIG\)/);
      const text = await read((await files())[1]);
      expect(text.length).toBeGreaterThan(3000);
      for (const line of text.trimEnd().split('\n').slice(1))
        expect(line).toMatch(/^x,\d+,invalid,.*character"$/);
    });

    it('--overwrite and the input, which is also standard input → refused, unchanged, nothing sent', async () => {
      const { fake, shell, read } = await setUp(csvOf(2));
      expect(await shell('cli import - --failures rows.csv --overwrite < rows.csv').exitCode).toBe(2);
      expect(await read('rows.csv')).toBe(csvOf(2));
      expect(fake.requests).toEqual([]);
    });
  });

  describe('where rows come from', () => {
    it('standard input → what is piped in is imported', async () => {
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

    it('a mistake in the last line of a pipe → nothing is sent, exit code 2', async () => {
      const { fake, start } = await setUp('');
      const { output, exitCode } = start(['-'], { stdin: `trackingNumber\n${NUMBER}\n"open` });
      expect(await exitCode).toBe(2);
      expect(output.stderr).toMatch(/^tracking-client: Standard input is no CSV: Quote Not Closed.*\n$/);
      expect(fake.requests).toEqual([]);
    });

    it('a pipe that stays open, and SIGINT → exit code 130 at once, nothing left behind', async () => {
      const { start, temporary } = await setUp('');
      let pipe = { end: () => {} };
      const { child, exitCode } = start(['-'], {
        stdin: (stdin) => {
          pipe = stdin;
          // A pipe does not hold so much, so the program reads when this is written.
          stdin.write(`trackingNumber\n${'x\n'.repeat(1_000_000)}`, () => child.kill('SIGINT'));
        },
      });
      expect(await exitCode).toBe(130);
      pipe.end();
      expect(await readdir(temporary)).toEqual([]);
    });
  });

  it('--json and `| head -1` → stops, says so, exit code 1', async () => {
    const { shell } = await setUp(csvOf(900));
    const { output, exitCode } = shell('cli import rows.csv --json | head -1');
    expect(await exitCode).toBe(1);
    expect(output.stdout.split('\n')).toHaveLength(2);
    expect(output.stderr).toContain('Run the same command again');
    expect(output.stderr).not.toMatch(/^ +at /m);
  });
});

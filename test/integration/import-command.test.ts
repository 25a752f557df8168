import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeTrackingService, type FakeTrackingServiceOptions } from 'tracking-client/testing';
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
  async function setUp(csv: string | Buffer, options: FakeTrackingServiceOptions = {}) {
    const folder = await mkdtemp(join(tmpdir(), 'tracking-client-import-'));
    const temporary = join(folder, 'tmp');
    await mkdir(temporary);
    const fake = createFakeTrackingService(options);
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
    const failures = async () => {
      const name = (await files()).find((file) => file.startsWith('rows.failures-')) ?? 'none';
      return { name, text: await readFile(join(folder, name), 'utf8') };
    };
    const path = (name: string) => join(folder, name);
    return { fake, folder, temporary, start, shell, files, failures, path };
  }

  describe('the file of failures', () => {
    it.each(['nowhere/failures.csv', 'rows.csv/failures.csv'])(
      '--failures %s, which cannot be written → one line, nothing sent, exit code 2',
      async (failures) => {
        const { fake, start } = await setUp(csvOf(3));
        const { output, exitCode } = start(['rows.csv', '--failures', failures]);
        expect(await exitCode).toBe(2);
        expect(output.stderr).toMatch(/^tracking-client: Could not write \S+failures\.csv: .+\n$/);
        expect(fake.requests).toEqual([]);
      },
    );

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
      const { shell, failures } = await setUp(`trackingNumber\n${'x\n'.repeat(60)}`);
      const { output, exitCode } = shell('ulimit -f 4; cli import rows.csv');
      expect(await exitCode).toBe(1);
      expect(output.stderr).toMatch(/Stopped at line \d+ of rows\.csv: .*file too large \(EFBIG\)/);
      const { text } = await failures();
      expect(text.length).toBeGreaterThan(3000);
      for (const line of text.trimEnd().split('\n').slice(1))
        expect(line).toMatch(/^x,\d+,invalid,.*character"$/);
    });

    it('the default, or --overwrite → a new file of the time of the run, or a replaced one; its owner alone may read it', async () => {
      const { start, failures, path } = await setUp('trackingNumber\nx\n');
      expect(await start(['rows.csv']).exitCode).toBe(1);
      const { name, text } = await failures();
      expect(name).toMatch(/^rows\.failures-\d{8}-\d{6}-\d{3}\.csv$/);
      expect(text).toMatch(/^trackingNumber,line,status,reason\nx,2,invalid,/);
      await writeFile(path('mine.csv'), 'earlier '.repeat(100));
      expect(await start(['rows.csv', '--failures', 'mine.csv', '--overwrite']).exitCode).toBe(1);
      expect(await readFile(path('mine.csv'), 'utf8')).toBe(text);
      for (const file of [name, 'mine.csv']) expect((await stat(path(file))).mode & 0o777).toBe(0o600);
    });

    it('--failures that exists → refused, unchanged, nothing sent, exit code 2', async () => {
      const { fake, start, path } = await setUp(csvOf(2));
      await writeFile(path('mine.csv'), 'earlier');
      const { output, exitCode } = start(['rows.csv', '--failures', 'mine.csv']);
      expect(await exitCode).toBe(2);
      expect(output.stderr).toBe(
        'tracking-client: mine.csv exists; name another file, or give --overwrite to replace it\n',
      );
      expect(await readFile(path('mine.csv'), 'utf8')).toBe('earlier');
      expect(fake.requests).toEqual([]);
    });

    it('--overwrite and a symbolic link → refused, what it points to is unchanged', async () => {
      const { start, path } = await setUp('trackingNumber\nx\n');
      await writeFile(path('other.csv'), 'precious');
      await symlink(path('other.csv'), path('mine.csv'));
      expect(await start(['rows.csv', '--failures', 'mine.csv', '--overwrite']).exitCode).toBe(2);
      expect(await readFile(path('other.csv'), 'utf8')).toBe('precious');
    });

    it.each(['hard link', 'symbolic link', 'linked folder', 'same name', 'standard input'])(
      '--overwrite and the input by another name (%s) → refused, unchanged, nothing sent',
      async (kind) => {
        const { fake, folder, start, shell, path } = await setUp(csvOf(2));
        if (kind === 'hard link') await link(path('rows.csv'), path('other.csv'));
        if (kind === 'symbolic link') await symlink('rows.csv', path('other.csv'));
        if (kind === 'linked folder') await symlink(folder, path('again'));
        const name = { 'linked folder': 'again/rows.csv', 'same name': './rows.csv' }[kind] ?? 'other.csv';
        const isPiped = kind === 'standard input';
        const { exitCode } = isPiped
          ? shell('cli import - --failures rows.csv --overwrite < rows.csv')
          : start(['rows.csv', '--failures', name, '--overwrite']);
        expect(await exitCode).toBe(2);
        expect(await readFile(path('rows.csv'), 'utf8')).toBe(csvOf(2));
        expect(fake.requests).toEqual([]);
      },
    );
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

    it('a temporary folder that cannot be written → one line, nothing sent, exit code 2', async () => {
      const { fake, start, temporary } = await setUp(csvOf(1));
      await rm(temporary, { recursive: true });
      await writeFile(temporary, '');
      const { output, exitCode } = start(['rows.csv']);
      expect(await exitCode).toBe(2);
      expect(output.stderr).toMatch(/^tracking-client: .*ENOTDIR.*\n$/);
      expect(fake.requests).toEqual([]);
    });

    it('a pipe that says nothing, and SIGINT → exit code 130 at once, nothing left behind', async () => {
      const { start, temporary } = await setUp('');
      let pipe = { end: () => {} };
      const { child, exitCode } = start(['-'], {
        stdin: (stdin) => {
          pipe = stdin;
          stdin.write('trackingNumber\n');
        },
      });
      // Late enough for the program to have started on a busy machine.
      setTimeout(() => child.kill('SIGINT'), 6_000);
      expect(await exitCode).toBe(130);
      pipe.end();
      expect(await readdir(temporary)).toEqual([]);
    });

    it.each([
      ['a folder', 'folder', 'Expected folder to be a file, got a folder'],
      ['a file below a file', 'rows.csv/x', 'Could not read rows.csv/x: not a directory (ENOTDIR)'],
      ['a link to itself', 'loop', /^Could not read loop: too many symbolic links encountered \(ELOOP\)$/],
    ])('%s → one line, exit code 2', async (_, name, message) => {
      const { start, path } = await setUp('trackingNumber\n');
      await mkdir(path('folder'));
      await symlink('loop', path('loop'));
      const { output, exitCode } = start([name]);
      expect(await exitCode).toBe(2);
      const [line = '', ...rest] = output.stderr.replace('tracking-client: ', '').split('\n');
      expect(line).toEqual(typeof message === 'string' ? message : expect.stringMatching(message));
      expect(rest).toEqual(['']);
    });
  });

  describe('what rows hold', () => {
    const withTitle = (delimiter: string) => `trackingNumber${delimiter}title\n${NUMBER}${delimiter}"a, b"\n`;
    const latin1 = Buffer.from(`trackingNumber,title\nLA680658838NL,Meier\n${NUMBER},Müller\n`, 'latin1');
    const utf16 = Buffer.from(`\ufefftrackingNumber\ttitle\r\n${NUMBER}\tTüte\r\n`, 'utf16le');

    it.each<[string, string | Buffer, string[], (string | undefined)[]]>([
      ['fewer fields than columns', `trackingNumber;title;;\n${NUMBER}\n;;;\n`, [], [undefined]],
      ['semicolons', withTitle(';'), [], ['a, b']],
      ['tabs', withTitle('\t'), [], ['a, b']],
      ['another delimiter', withTitle('|'), ['--delimiter', '|'], ['a, b']],
      ['Latin-1', latin1, ['--encoding', 'latin1'], ['Meier', 'Müller']],
      ['UTF-16 of a spreadsheet', utf16, ['--encoding', 'utf-16le'], ['Tüte']],
    ])('%s → read', async (_, csv, flags, titles) => {
      const { fake, start } = await setUp(csv);
      const { output, exitCode } = start(['rows.csv', ...flags]);
      expect([await exitCode, output.stderr]).toEqual([0, '']);
      expect(fake.requests[0]?.body).toMatchObject(
        titles.map((title) => (title === undefined ? {} : { title })),
      );
      expect(fake.trackers).toHaveLength(titles.length);
    });

    it.each<[string, string | Buffer, RegExp]>([
      [
        'more fields than columns',
        `trackingNumber,title\nLA680658838NL,Box\n${NUMBER},Box, red\n`,
        /: Line 3 of rows\.csv has more fields than the first line\. A field that holds the delimiter needs quotes\n$/,
      ],
      ['Latin-1 as UTF-8', latin1, /: Expected rows\.csv to be UTF-8.* line 3.*--encoding latin1.*\n$/],
      ['UTF-16 as UTF-8', utf16, /: Expected rows\.csv to be UTF-8.* line 1.*utf-16le\n$/],
      [
        'a column twice',
        'trackingNumber,title,title\n',
        /: Expected each column .* once, got title twice\n$/,
      ],
      ['a field twice', 'trackingNumber,order_number,Order Number\n', /once, got orderNumber twice\n$/],
    ])('%s → refused, nothing sent', async (_, csv, message) => {
      const { fake, start } = await setUp(csv);
      const { output, exitCode } = start(['rows.csv']);
      expect(await exitCode).toBe(2);
      expect(output.stderr).toMatch(message);
      expect(fake.requests).toEqual([]);
    });

    it('a file of failures → imported again without a word about its own columns, with its delimiter', async () => {
      const { start, failures, files, path } = await setUp(
        `trackingNumber;status;note\nx;"open; paid";=1+1\n`,
      );
      expect(await start(['rows.csv']).exitCode).toBe(1);
      const { name, text } = await failures();
      expect(text).toMatch(
        /^trackingNumber;status;note;line;status;reason\nx;"open; paid";=1\+1;2;invalid;validation_error: /,
      );
      await writeFile(path('mended.csv'), text.replace('\nx;', `\n${NUMBER};`));
      const again = start(['mended.csv']);
      expect(await again.exitCode).toBe(0);
      expect(again.output.stderr).toBe('Columns that are not sent: status, note\n');
      expect(await files()).toEqual(['mended.csv', 'rows.csv', name]);
    });

    it('a reason of the service that is a formula with escape codes → neither is left; cells of the user stay', async () => {
      const { fake, start, failures } = await setUp(`trackingNumber,title\n${NUMBER},=SUM(A1)\n`);
      const code = '=HYPERLINK("http://evil.example")\u001b[2J\u009b31m\u2028';
      fake.fail('trackers.createBulk', { status: 400, code, message: '\u202egnp' });
      expect(await start(['rows.csv']).exitCode).toBe(1);
      expect((await failures()).text.split('\n')[1]).toBe(
        `${NUMBER},=SUM(A1),2,error,"'=HYPERLINK(""http://evil.example"") : gnp"`,
      );
    });
  });

  describe('what is said at the end', () => {
    it('a wrong key → the reason and its count in the summary', async () => {
      const { start } = await setUp(csvOf(250), { apiKeys: ['another'] });
      const { output, exitCode } = start(['rows.csv']);
      expect(await exitCode).toBe(1);
      expect(output.stdout).toMatch(/\nWhy\n +250 +auth_invalid_api_key: .*\(first in line 2\)\n/);
    });

    it('SIGINT in the middle → says that the same command goes on; which finds what exists', async () => {
      const { fake, start, files } = await setUp(csvOf(900), { latencyMs: 100 });
      const { child, output, exitCode } = start(['rows.csv']);
      const stop = setInterval(() => fake.trackers.length > 0 && child.kill('SIGINT'), 20);
      expect(await exitCode).toBe(130);
      clearInterval(stop);
      expect(output.stderr).toContain(
        'Stopped. Run the same command again to go on: what exists is found again, not created twice.\n',
      );
      const created = fake.trackers.length;
      expect(created).toBeLessThan(900);
      const again = start(['rows.csv']);
      expect(await again.exitCode).toBe(0);
      expect(again.output.stdout).toContain(`existing ${String(created).padStart(6)}`);
      expect(fake.trackers).toHaveLength(900);
      expect((await files()).length).toBeLessThanOrEqual(2);
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
});

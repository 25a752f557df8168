import { appendFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { chmod, link, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { createFakeTrackingService } from 'tracking-client/testing';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { buildCsv } from '../support/csv.ts';
import { useImportFolder } from './import-folder.ts';
import { connect, makeTerminal } from './make-terminal.ts';

const NUMBER = 'RR123456785CN';

describe('import', () => {
  const { findPath, readFailures, importFile, importRows } = useImportFolder();

  it('good rows with column titles in other spellings → trackers, a summary, no file of failures, exit code 0', async () => {
    const csv =
      '\uFEFFTracking Number,client_tracker_id,COURIER-CODE,recipient email,price\n' +
      `${NUMBER},order-1, us-post ; cn-post|,a@b.example,5\nLA680658838NL,,,,\n`;
    const { fake, exitCode, failed, lines, output } = await importRows(csv);
    const recipient = { email: 'a@b.example' };
    const courierCode = ['us-post', 'cn-post'];
    expect(exitCode).toBe(0);
    expect(fake.requests.at(-1)?.body).toEqual([
      { trackingNumber: NUMBER, clientTrackerId: 'order-1', courierCode, recipient },
      { trackingNumber: 'LA680658838NL' },
    ]);
    expect(lines()).toEqual(['2 of 2 rows', '  created       2  new trackers']);
    expect([output.stderr, failed]).toEqual(['Columns that are not sent: price\n', undefined]);
  });

  it('rows that fail → a file with the unchanged rows, their lines and reasons, exit code 1', async () => {
    const csv =
      'tracking_number,client_tracker_id,note\n' +
      'RR123456785CN,order-1,"a,\nb"\nx,order-2,\n\nLA680658838NL,order-1,taken\n';
    const { exitCode, failed, lines } = await importRows(csv);
    expect(exitCode).toBe(1);
    expect(failed?.split('\n')).toEqual([
      'tracking_number,client_tracker_id,note,line,status,reason',
      `x,order-2,,4,invalid,"validation_error: Expected \`trackingNumber\` to have 5 to 50 characters, got 'x'"`,
      expect.stringMatching(/^LA680658838NL,order-1,taken,6,error,tracker_conflict: /),
      '',
    ]);
    expect(lines().slice(4)).toEqual([
      'Reasons',
      expect.stringMatching(/^ {7}1 {2}validation_error: Expected .* \(first in line 4\)$/),
      expect.stringMatching(/^ {7}1 {2}tracker_conflict: .* \(first in line 6\)$/),
      expect.stringMatching(
        /^Failed rows \(fix the causes, then import this file\): .*rows\.failures-\d{8}-\d{6}-\d{3}\.csv$/,
      ),
    ]);
  });

  it('--json → one outcome per line, the summary on stderr', async () => {
    const { lines, output } = await importRows('trackingNumber\nRR123456785CN\nx\n', ['--json']);
    expect(lines().map((line) => JSON.parse(line))).toMatchObject([
      { line: 2, status: 'created', trackingNumber: NUMBER, trackerId: expect.any(String), errors: [] },
      { line: 3, status: 'invalid', trackerId: null, errors: [{ code: 'validation_error' }] },
    ]);
    expect(output.stderr).toContain('2 of 2 rows\n');
  });

  it('--json, a terminal, and a file for stderr → a summary without colours', async () => {
    for (const name of ['NO_COLOR', 'FORCE_COLOR']) vi.stubEnv(name, undefined);
    const screen = { isLive: { stdout: true, stderr: false }, hasColours: true };
    const { output } = await importRows('trackingNumber,price\nx,5\n', ['--json'], screen);
    expect(output.stderr).toContain('1 of 1 rows\n');
    expect(output.stderr).not.toContain('\u001b');
  });

  it('a terminal → a progress bar, and the result below it', async () => {
    const { output, lines } = await importRows(buildCsv(250), [], { isLive: true });
    expect(output.stderr).toMatch(/█+░* 40% · 100 of 250 rows|100% · 250 of 250 rows/);
    expect(lines()[0]).toBe('250 of 250 rows');
  });

  /** Imports a file, and presses Ctrl-C when the first trackers exist. */
  async function interruptImport(csv: string, flags: string[] = []) {
    const fake = connect(createFakeTrackingService({ latencyMs: 50 }));
    const recorded = makeTerminal();
    await writeFile(findPath('rows.csv'), csv);
    const stop = setInterval(() => fake.trackers.length > 0 && recorded.interrupt(), 5);
    const exitCode = await run(['import', findPath('rows.csv'), ...flags], recorded.terminal);
    clearInterval(stop);
    return { fake, exitCode, ...recorded };
  }

  it('Ctrl-C in mid-run → exit code 130; a second run finds the existing trackers and creates the rest', async () => {
    const { fake, exitCode, lines, output } = await interruptImport(buildCsv(400));
    expect(exitCode).toBe(130);
    expect(lines()[0]).toMatch(/^\d{3} of 400 rows$/);
    expect(output.stderr).toBe(
      'Stopped. Run the same command again to continue; no tracker is created twice.\n',
    );
    expect(await readFailures()).toMatch(/aborted: Aborted (before the service accepted|while) this input/);
    const created = fake.trackers.length;
    const again = await importFile(findPath('rows.csv'), [], { fake });
    expect(again.exitCode).toBe(0);
    expect(again.lines()).toContainEqual(expect.stringMatching(new RegExp(`^  existing +${created} `)));
    expect(fake.trackers).toHaveLength(400);
  });

  it('Ctrl-C while some rows are sent and others wait → each reason with as many rows as the file of failed rows', async () => {
    const fake = connect();
    const { terminal, interrupt, lines } = makeTerminal();
    let requests = 0;
    vi.stubGlobal('fetch', (_url: string, { signal }: { signal: AbortSignal }) => {
      requests += 1;
      if (requests > 1) return Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    // The refused request waits for its retry.
    terminal.stderr.on('data', (text: Buffer) => text.includes('retries') && interrupt());
    await writeFile(findPath('rows.csv'), buildCsv(130));
    expect(await run(['import', findPath('rows.csv')], terminal)).toBe(130);
    expect(fake.trackers).toEqual([]);
    const failed: string[][] = parse((await readFailures()) ?? '', { from: 2 });
    const countIn = (list: readonly string[]) =>
      [/may or may not exist/, /before the service accepted/].map(
        (pattern) => list.filter((text) => pattern.test(text)).length,
      );
    expect(countIn(failed.map((row) => row.at(-1) ?? ''))).toEqual([100, 30]);
    const reasons = lines().flatMap((line) => (line.includes('(first in line ') ? line.trim() : []));
    expect(reasons).toEqual([
      expect.stringMatching(/^100 {2}aborted: .*may or may not exist.* \(first in line 2\)$/),
      expect.stringMatching(/^30 {2}aborted: .*before the service accepted.* \(first in line 102\)$/),
    ]);
  });

  it('Ctrl-C after rows that failed → one order: to run the command again, with --overwrite for a named file', async () => {
    const csv = buildCsv(400).replace('\n', '\nx\n');
    const unnamed = await interruptImport(csv);
    expect(unnamed.lines().at(-1)).toMatch(/^Failed rows so far: .*\.csv$/);
    expect(unnamed.output.stdout + unnamed.output.stderr).not.toMatch(/fix the causes|Rows to import again/);
    const flags = ['--failures', findPath('mine.csv')];
    const named = await interruptImport(csv, flags);
    expect(named.output.stderr).toBe(
      'Stopped. Run the same command again with --overwrite to continue; no tracker is created twice.\n',
    );
    const again = await importFile(findPath('rows.csv'), [...flags, '--overwrite'], { fake: named.fake });
    expect(again.exitCode).toBe(1);
    expect(named.fake.trackers).toHaveLength(400);
    const overwritten = await interruptImport(csv, [...flags, '--overwrite']);
    expect(overwritten.output.stderr).toContain('Run the same command again to continue;');
  });

  it('Ctrl-C while the file is checked → exit code 130 at once, nothing sent, no file of failures', async () => {
    const fake = connect();
    const { terminal, interrupt, output } = makeTerminal();
    await writeFile(findPath('rows.csv'), buildCsv(100));
    const exitCode = run(['import', findPath('rows.csv')], terminal);
    interrupt();
    expect(await exitCode).toBe(130);
    expect([output.stdout, output.stderr, fake.requests]).toEqual(['', '', []]);
    expect(await readdir(findPath())).toEqual(['rows.csv']);
  });

  describe('a file that changes between the check and the sending', () => {
    // The notes make the file larger than one read.
    const note = 'n'.repeat(2000);
    const buildRows = (count: number, start = 0) =>
      Array.from({ length: count }, (_, index) => `LP${String(start + index).padStart(9, '0')}CN,${note}\n`);
    const all = buildRows(500);

    const csv = ['trackingNumber,note\n', ...all].join('');

    /** Imports the file, and changes it before the rows are read again, or at the first request. */
    async function importChanging(change: () => void, isAtRequest: boolean) {
      const fake = connect();
      const { terminal, lines, output } = makeTerminal();
      await writeFile(findPath('rows.csv'), csv);
      if (isAtRequest)
        vi.stubGlobal('fetch', (...args: Parameters<typeof fake.fetch>) => {
          if (fake.requests.length === 0) change();
          return fake.fetch(...args);
        });
      // After the check, the command prints that the column `note` is not sent.
      else terminal.stderr.once('data', change);
      const exitCode = await run(['import', findPath('rows.csv'), '--json'], terminal);
      const numbers = lines().map((line): string => JSON.parse(line).trackingNumber);
      const stopped = output.stderr.split('\n').find((line) => line.startsWith('Stopped')) ?? '';
      return { fake, exitCode, numbers, stopped, output };
    }

    it.each<[string, boolean, () => void, RegExp]>([
      ['grows by garbage', true, () => appendFileSync(findPath('rows.csv'), 'x,"open'), / 501: /],
      [
        'grows by rows',
        true,
        () => appendFileSync(findPath('rows.csv'), buildRows(5, 500).join('')),
        / 501: /,
      ],
      ['shrinks', true, () => truncateSync(findPath('rows.csv'), 700_001), / 34\d: /],
      ['shrinks by whole rows', true, () => truncateSync(findPath('rows.csv'), 20 + 2015 * 400), / 401: /],
      [
        'is written again so that a read begins inside a row',
        true,
        () => writeFileSync(findPath('rows.csv'), csv.replace('note', 'note,more')),
        / [1-9]\d+: /,
      ],
      [
        'is written again with another first row',
        false,
        () => writeFileSync(findPath('rows.csv'), csv.replace('LP', 'LX')),
        / 1: /,
      ],
      ['is deleted', false, () => rmSync(findPath('rows.csv')), / 1: /],
    ])(
      '%s → only rows that were checked are sent, all are reported, exit code 1',
      async (_, isAtRequest, change, place) => {
        const { fake, exitCode, numbers, stopped, output } = await importChanging(change, isAtRequest);
        expect(exitCode).toBe(1);
        expect(numbers).toEqual(all.slice(0, numbers.length).map((row) => row.slice(0, 13)));
        expect(fake.trackers).toHaveLength(numbers.length);
        expect(output.stderr).toContain(`${numbers.length} of 500 rows\n`);
        expect(stopped).toMatch(new RegExp(`^Stopped after line${place.source}`));
        expect(stopped).toMatch(
          /rows\.csv has changed since it was checked\. Run the same command again to continue; no tracker is created twice\.$/,
        );
      },
    );
  });

  it('rows whose trackers perhaps exist → the last line asks to import them again', async () => {
    const fake = connect();
    fake.fail('trackers.createBulk', { status: 503, times: Number.POSITIVE_INFINITY });
    const { exitCode, lines } = await importRows(buildCsv(1), [], { fake });
    expect(exitCode).toBe(1);
    expect(lines().at(-1)).toMatch(/^Rows to import again: .*\.csv$/);
  });

  it('a wrong key → the summary shows the reason and how many rows it concerns', async () => {
    const fake = connect(createFakeTrackingService({ apiKeys: ['another'] }));
    vi.stubEnv('TRACKING_API_KEY', 'hush-hush');
    const { exitCode, lines } = await importRows(buildCsv(150), [], { fake });
    expect(exitCode).toBe(1);
    expect(lines()).toContainEqual(
      expect.stringMatching(/^ +150 +auth_invalid_api_key: .*\(first in line 2\)$/),
    );
  });

  it.each(['any', 'order-1', NUMBER])('rows that contain the key %s → created, exit code 0', async (key) => {
    const fake = connect(createFakeTrackingService({ apiKeys: [key] }));
    const csv = `tracking_number,client_tracker_id,shipment_reference\n${NUMBER},any,any order\nLA680658838NL,order-1,any\n`;
    const { exitCode, failed, lines } = await importRows(csv, ['--json'], { fake });
    expect(exitCode).toBe(0);
    expect(failed).toBeUndefined();
    expect(lines().map((line) => JSON.parse(line))).toMatchObject([
      { status: 'created', trackingNumber: NUMBER },
      { status: 'created', trackingNumber: 'LA680658838NL' },
    ]);
    expect(fake.requests[0]?.body).toMatchObject([
      { clientTrackerId: 'any' },
      { clientTrackerId: 'order-1' },
    ]);
  });

  it('many reasons → the five most frequent and how many more there are; a rule that two rows break is one reason', async () => {
    const { exitCode, lines } = await importRows(
      'trackingNumber,originCountryCode,destinationCountryCode,recipientEmail\n' +
        `x,,,\nb@d-number,,,\n123456789,,,\n${NUMBER},Narnia,,\n${NUMBER},,Narnia,\n` +
        `${NUMBER},,,nobody\n${NUMBER},,,somebody\n`,
    );
    expect(exitCode).toBe(1);
    const reasons = lines().filter((line) => line.includes('first in line'));
    expect(reasons).toHaveLength(5);
    expect(reasons[0]).toMatch(/^ +2 .*`recipient\.email`.*\(first in line 7\)$/);
    expect(lines()).toContain('  and 1 other reason');
  });

  const latin1 = Buffer.from(`trackingNumber,title\nLA680658838NL,Meier\n${NUMBER},Müller\n`, 'latin1');
  const utf16 = Buffer.from(`\ufefftrackingNumber\ttitle\r\n${NUMBER}\tTüte\r\n`, 'utf16le');

  it.each<[string, string | Buffer, string[], (string | undefined)[]]>([
    ['fewer fields than columns', `trackingNumber;title;;\n${NUMBER}\n;;;\n`, [], [undefined]],
    ['semicolons', `trackingNumber;title\n${NUMBER};"a, b"\n`, [], ['a, b']],
    ['tabs', `trackingNumber\ttitle\n${NUMBER}\t"a, b"\n`, [], ['a, b']],
    ['another delimiter', `trackingNumber|title\n${NUMBER}|"a, b"\n`, ['--delimiter', '|'], ['a, b']],
    ['Latin-1', latin1, ['--encoding', 'latin1'], ['Meier', 'Müller']],
    ['UTF-16 of a spreadsheet', utf16, ['--encoding', 'utf-16le'], ['Tüte']],
    ['a line sep=;', `\uFEFFsep=;\r\ntrackingNumber;title\r\n${NUMBER};"a, b"\r\n`, [], ['a, b']],
    ['a line sep=| and a quote', `"sep=|"\ntrackingNumber|title\n${NUMBER}|"a;b"\n`, [], ['a;b']],
  ])('%s → read', async (_, csv, flags, titles) => {
    const { fake, exitCode, output } = await importRows(csv, flags);
    expect([exitCode, output.stderr]).toEqual([0, '']);
    expect(fake.requests[0]?.body).toMatchObject(
      titles.map((title) => (title === undefined ? {} : { title })),
    );
    expect(fake.trackers).toHaveLength(titles.length);
  });

  it.each<[string, string | Buffer, RegExp]>([
    ['an empty file', '', /rows\.csv is empty; begin the file with a line that names the columns\n$/],
    ['no column of tracking numbers', 'reference\nx\n', /no column trackingNumber; .* is now: reference\n$/],
    ['a column of other numbers', `number\n${NUMBER}\n`, /no column trackingNumber; .* is now: number\n$/],
    [
      'an open quote',
      `trackingNumber\n${NUMBER}\n"open`,
      /rows\.csv is not valid CSV: after line 2, a quote begins a field, but no quote ends the field\. If/,
    ],
    [
      'more fields than columns',
      `trackingNumber,title\nLA680658838NL,Box\n${NUMBER},Box, red\n`,
      /: \S+ cannot be imported; nothing was sent.*\n {2}line 3: 3 fields, but the first line names 2 columns; .*\n$/,
    ],
    ['Latin-1 as UTF-8', latin1, /: Line 3 of \S+ is not UTF-8 text; .*--encoding latin1.*\n$/],
    ['a field twice', 'trackingNumber,order_number,Order Number\n', /the column orderNumber twice; .*\n$/],
  ])('%s → one sentence, nothing sent, exit code 2', async (_, csv, message) => {
    const { fake, exitCode, output } = await importRows(csv);
    expect(exitCode).toBe(2);
    expect(output.stderr).toMatch(message);
    expect(fake.requests).toEqual([]);
  });

  it('faults of a spreadsheet in 12 rows → the first ten with their lines, nothing sent, exit code 2', async () => {
    const rows = ['1,23457E+11;;a', `${NUMBER};15.11.2026;a`, `${NUMBER};2026-11-15;a;b`];
    const csv = `trackingNumber;shippingDate;title\n${rows.join('\n')}\n${`${NUMBER};11/15/26;a\n`.repeat(9)}`;
    const { fake, exitCode, output } = await importRows(csv);
    expect(exitCode).toBe(2);
    expect(output.stderr.split('\n')).toEqual([
      expect.stringMatching(/^tracking-client: \S+rows\.csv cannot be imported; nothing was sent\./),
      expect.stringMatching(/^ {2}line 2: trackingNumber "1,23457E\+11" is a number with an exponent/),
      expect.stringMatching(/^ {2}line 3: shippingDate "15\.11\.2026" must have the form YYYY-MM-DD/),
      expect.stringMatching(/^ {2}line 4: 4 fields, but the first line names 3 columns; /),
      ...[5, 6, 7, 8, 9, 10, 11].map((line) =>
        expect.stringMatching(new RegExp(`^ {2}line ${line}: .*11/15/26`)),
      ),
      '  and more lines after these',
      '  If all these ids are right as they are, pass --as-is.',
      '',
    ]);
    expect(fake.requests).toEqual([]);
  });

  it('a column number beside trackingNumber → not sent', async () => {
    const { fake, output } = await importRows(`number,trackingNumber\n7,${NUMBER}\n`);
    expect(output.stderr).toBe('Columns that are not sent: number\n');
    expect(fake.requests[0]?.body).toEqual([{ trackingNumber: NUMBER }]);
  });

  it.each([
    ['a folder', 'folder', /^\S+ is a folder; give the path of a CSV file\n$/],
    ['a file below a file', 'rows.csv/x', /^Could not read \S+: not a directory \(ENOTDIR\)\n$/],
    // It cannot be read twice.
    ['a device that sends more than 64 MiB', '/dev/zero', /^\/dev\/zero has more than 64 MiB, .*\n$/],
  ])('%s → one line, nothing sent, exit code 2', async (_, name, message) => {
    await writeFile(findPath('rows.csv'), '');
    await mkdir(findPath('folder'));
    const { fake, exitCode, output } = await importFile(resolve(findPath(), name));
    expect(exitCode).toBe(2);
    expect(output.stderr.replace('tracking-client: ', '')).toMatch(message);
    expect(fake.requests).toEqual([]);
  });

  it('line breaks of three kinds in one file → every row, with its line in an editor', async () => {
    const csv = `trackingNumber,title\r\nLP000000001CN,a\nLP000000002CN,"b\r\nc"\rx,d\r\n\r\n${NUMBER},e`;
    const { fake, lines } = await importRows(csv, ['--json']);
    expect(lines().map((text) => JSON.parse(text).line)).toEqual([2, 4, 5, 7]);
    expect(fake.requests[0]?.body).toMatchObject([{ title: 'a' }, { title: 'b\r\nc' }, { title: 'e' }]);
  });

  it('any cells, quotes and line breaks → one outcome for each row; as input again, the failed rows have the same cells', async () => {
    const cell = fc.string({
      unit: fc.constantFrom('a', 'é', ' ', '\t', ',', ';', '|', '"', '=', '\r', '\n', '\r\n'),
      maxLength: 6,
    });
    const lineBreak = fc.constantFrom('\r\n', '\n', '\r');
    const rows = fc.array(fc.tuple(cell, fc.boolean(), lineBreak), { minLength: 1, maxLength: 30 });
    const property = fc.asyncProperty(
      rows,
      fc.constantFrom(',', ';', '\t', '|'),
      async (written, delimiter) => {
        const csv = written.map(([text, isQuoted, end], index) => {
          const needsQuotes = isQuoted || /^\s|\s$|["\r\n,;|\t]/.test(text);
          const title = needsQuotes ? `"${text.replaceAll('"', '""')}"` : text;
          return `n${index}${delimiter}${title}${end}`;
        });
        const flags = ['--json', '--overwrite', '--delimiter', delimiter === '\t' ? 'tab' : delimiter];
        const importText = async (text: string) => {
          await writeFile(findPath('rows.csv'), text);
          const failures = ['--failures', findPath('failures.csv')];
          const { lines } = await importFile(findPath('rows.csv'), [...flags, ...failures]);
          const failed = await readFile(findPath('failures.csv'), 'utf8');
          await rm(findPath('failures.csv'));
          return { failed, numbers: lines().map((line) => JSON.parse(line).trackingNumber) };
        };
        const first = await importText(`trackingNumber${delimiter}title\n${csv.join('')}`);
        expect(first.numbers).toEqual(written.map((_, index) => `n${index}`));
        const second = await importText(first.failed);
        const titlesOf = (text: string) =>
          (parse(text, { delimiter, from: 2, trim: true, bom: true }) as string[][]).map(
            ([, title]) => title,
          );
        expect(titlesOf(first.failed)).toEqual(written.map(([text]) => text));
        expect(titlesOf(second.failed)).toEqual(written.map(([text]) => text));
      },
    );
    await fc.assert(property, { numRuns: 25 });
  });

  describe('the file of failures', () => {
    it('--failures in a folder that does not exist → one line, nothing sent, exit code 2', async () => {
      const flags = ['--failures', findPath('nowhere/failures.csv')];
      const { fake, exitCode, output } = await importRows(buildCsv(3), flags);
      expect(exitCode).toBe(2);
      expect(output.stderr).toMatch(/^tracking-client: Could not write \S+failures\.csv: .+\n$/);
      expect(fake.requests).toEqual([]);
    });

    it('the default path or --overwrite → a new or replaced file that only its owner may read', async () => {
      const { failed } = await importRows('trackingNumber\nx\n');
      const [name = ''] = (await readdir(findPath())).filter((file) => file !== 'rows.csv');
      expect(failed).toMatch(/^trackingNumber,line,status,reason\nx,2,invalid,/);
      await writeFile(findPath('mine.csv'), 'earlier '.repeat(100));
      const flags = ['--failures', findPath('mine.csv'), '--overwrite'];
      expect((await importRows('trackingNumber\nx\n', flags)).exitCode).toBe(1);
      expect(await readFile(findPath('mine.csv'), 'utf8')).toBe(failed);
      for (const file of [name, 'mine.csv']) expect((await stat(findPath(file))).mode & 0o777).toBe(0o600);
    });

    it('the default path where Node knows only English → the local time in digits', async () => {
      vi.useFakeTimers({ now: new Date(2026, 10, 2, 9, 5, 7, 42), toFake: ['Date'] });
      for (const method of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'] as const)
        vi.spyOn(Date.prototype, method).mockReturnValue('11/2/2026, 9:05:07 AM');
      expect((await importRows('trackingNumber\nx\n')).exitCode).toBe(1);
      expect(await readdir(findPath())).toEqual(['rows.csv', 'rows.failures-20261102-090507-042.csv']);
    });

    describe('a drive that refuses to change the mode of a file', () => {
      beforeEach(async () => {
        const handle = await open(findPath(), 'r');
        const refusal = Object.assign(new Error('EPERM: operation not permitted, fchmod'), { code: 'EPERM' });
        vi.spyOn(Object.getPrototypeOf(handle), 'chmod').mockRejectedValue(refusal);
        await handle.close();
      });

      it('a new file of failures, which is private → written, no warning', async () => {
        const { exitCode, failed, output } = await importRows('trackingNumber\nx\n');
        expect([exitCode, output.stderr]).toEqual([1, '']);
        expect(failed).toMatch(/\nx,2,invalid,/);
      });

      it('an existing file that others may read → written, and a warning that names the file', async () => {
        await writeFile(findPath('mine.csv'), 'earlier', { mode: 0o644 });
        const flags = ['--failures', findPath('mine.csv'), '--overwrite'];
        const { exitCode, output } = await importRows('trackingNumber\nx\n', flags);
        expect(exitCode).toBe(1);
        expect(output.stderr).toMatch(/^Other users may be able to read \S+mine\.csv, because .*\n$/);
        expect(await readFile(findPath('mine.csv'), 'utf8')).toMatch(/\nx,2,invalid,/);
      });
    });

    const CHOOSE_ANOTHER =
      /^tracking-client: Could not write \S+: .+ \(E[A-Z]+\); choose another file with --failures\n$/;

    // Root may write everywhere.
    it.skipIf(process.getuid?.() === 0)(
      'a read-only folder → nothing sent, exit code 2; with --failures elsewhere → imported',
      async () => {
        await writeFile(findPath('rows.csv'), `trackingNumber\n${NUMBER}\n`);
        await chmod(findPath(), 0o555);
        const { fake, exitCode, output } = await importFile(findPath('rows.csv'));
        expect([exitCode, fake.requests]).toEqual([2, []]);
        expect(output.stderr).toMatch(CHOOSE_ANOTHER);
        expect(
          (await importFile(findPath('rows.csv'), ['--failures', '/dev/null', '--overwrite'])).exitCode,
        ).toBe(0);
        await chmod(findPath(), 0o755);
      },
    );

    it('a name that is too long for the default path → nothing sent, the message names --failures, exit code 2', async () => {
      const path = findPath(`${'n'.repeat(240)}.csv`);
      await writeFile(path, `trackingNumber\n${NUMBER}\n`);
      const { fake, exitCode, output } = await importFile(path);
      expect([exitCode, fake.requests]).toEqual([2, []]);
      expect(output.stderr).toMatch(CHOOSE_ANOTHER);
      expect((await importFile(path, ['--failures', findPath('failures.csv')])).exitCode).toBe(0);
    });

    it('an empty file of failures that cannot be removed → the import is done, exit code 0', async () => {
      // `rm` without `recursive` removes no folder, and a folder that is moved over the file stands for a file that must stay.
      await writeFile(findPath('rows.csv'), `trackingNumber\n${NUMBER}\n`);
      const fake = connect();
      vi.stubGlobal('fetch', async (...args: Parameters<typeof fake.fetch>) => {
        await rm(findPath('mine.csv'));
        await mkdir(findPath('mine.csv'));
        return fake.fetch(...args);
      });
      const { terminal, lines, output } = makeTerminal();
      const exitCode = await run(
        ['import', findPath('rows.csv'), '--failures', findPath('mine.csv')],
        terminal,
      );
      expect([exitCode, output.stderr]).toEqual([0, '']);
      expect(lines()[0]).toBe('1 of 1 rows');
    });

    it('--failures that exists → refused, unchanged, nothing sent, exit code 2', async () => {
      await writeFile(findPath('mine.csv'), 'earlier');
      const { fake, exitCode, output } = await importRows(buildCsv(2), ['--failures', findPath('mine.csv')]);
      expect(exitCode).toBe(2);
      expect(output.stderr).toMatch(
        /mine\.csv exists already; choose another file for --failures, or replace this one with --overwrite\n$/,
      );
      expect(await readFile(findPath('mine.csv'), 'utf8')).toBe('earlier');
      expect(fake.requests).toEqual([]);
    });

    it('--overwrite and a symbolic link → refused, and the target of the link is unchanged', async () => {
      await writeFile(findPath('other.csv'), 'precious');
      await symlink(findPath('other.csv'), findPath('mine.csv'));
      const flags = ['--failures', findPath('mine.csv'), '--overwrite'];
      expect((await importRows('trackingNumber\nx\n', flags)).exitCode).toBe(2);
      expect(await readFile(findPath('other.csv'), 'utf8')).toBe('precious');
    });

    it.each([
      ['hard link', 'other.csv', () => link(findPath('rows.csv'), findPath('other.csv'))],
      ['linked folder', 'again/rows.csv', () => symlink(findPath(), findPath('again'))],
      ['same name', './rows.csv', () => undefined],
    ])(
      '--overwrite and the input by another name (%s) → refused, unchanged, nothing sent',
      async (_, name, prepare) => {
        await writeFile(findPath('rows.csv'), buildCsv(2));
        await prepare();
        const flags = ['--failures', `${findPath()}/${name}`, '--overwrite'];
        const { fake, exitCode } = await importFile(findPath('rows.csv'), flags);
        expect(exitCode).toBe(2);
        expect(await readFile(findPath('rows.csv'), 'utf8')).toBe(buildCsv(2));
        expect(fake.requests).toEqual([]);
      },
    );

    it('the file of failures as input → read with its delimiter, no warning about its own columns, no second file', async () => {
      const { failed = '' } = await importRows(`trackingNumber;status;note\nx;"open; paid";=1+1\n`);
      expect(failed).toMatch(
        /^trackingNumber;status;note;line;status;reason\nx;"open; paid";=1\+1;2;invalid;"validation_error: /,
      );
      await writeFile(findPath('mended.csv'), failed.replace('\nx;', `\n${NUMBER};`));
      const { exitCode, output } = await importFile(findPath('mended.csv'));
      expect([exitCode, output.stderr]).toEqual([0, 'Columns that are not sent: status, note\n']);
      expect(await readdir(findPath())).toHaveLength(3);
    });

    it.each<[string, string | Buffer, string[], boolean]>([
      ['UTF-8 with a byte order mark', '\uFEFFtrackingNumber,title\nx,Ä\n', [], true],
      ['UTF-8 without it', 'trackingNumber,title\nx,Ä\n', [], false],
      ['Latin-1', Buffer.from('trackingNumber,title\nx,Ä\n', 'latin1'), ['--encoding', 'latin1'], true],
    ])('rows in %s → UTF-8 that a spreadsheet reads', async (_, csv, flags, hasMark) => {
      const { failed } = await importRows(csv, flags);
      expect(failed).toMatch(/^\uFEFF?trackingNumber,title,line,status,reason\nx,Ä,/);
      expect(failed?.startsWith('\uFEFF')).toBe(hasMark);
    });

    it('a cell with the delimiter of another spreadsheet → quoted, so that it stays one cell', async () => {
      for (const cell of ['a,=1+1', 'a;=1+1', 'a\t=1+1']) {
        const flags = ['--delimiter', '|', '--overwrite', '--failures', findPath('failures.csv')];
        await importRows(`trackingNumber|title\nx|"${cell}"\n`, flags);
        expect(await readFile(findPath('failures.csv'), 'utf8')).toContain(`\nx|"${cell}"|2|invalid|`);
      }
    });

    it.each(['=', '+', '-', '@', '＝', '＋', '－', '＠'])(
      'a reason that begins with %s, which spreadsheets take for a formula → an apostrophe in front',
      async (sign) => {
        const fake = connect();
        fake.fail('trackers.createBulk', { status: 400, code: `${sign}1+1`, message: 'no' });
        const { failed } = await importRows(`trackingNumber\n${NUMBER}\n`, [], { fake });
        expect(failed?.split('\n')[1]).toBe(`${NUMBER},2,error,'${sign}1+1: no`);
      },
    );

    it('an error text with a formula and escape codes → made harmless; the cells of the user are unchanged', async () => {
      const fake = connect();
      const code = '=HYPERLINK("http://evil.example")\u001b[2J\u009b31m\u2028';
      fake.fail('trackers.createBulk', { status: 400, code, message: '\u202egnp' });
      const { failed } = await importRows(`trackingNumber,title\n${NUMBER},=SUM(A1)\n`, [], { fake });
      expect(failed?.split('\n')[1]).toBe(
        `${NUMBER},=SUM(A1),2,error,"'=HYPERLINK(""http://evil.example"") : gnp"`,
      );
    });
  });
});

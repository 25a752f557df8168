import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFakeTrackingService } from 'tracking-client/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { csvOf } from '../support/csv.ts';
import { connect, makeTerminal } from './make-terminal.ts';

const NUMBER = 'RR123456785CN';

describe('import', () => {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tracking-client-import-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  /** The text of the file of failures; undefined where there is none. */
  async function readFailures(): Promise<string | undefined> {
    const name = (await readdir(folder)).find((file) => file.startsWith('rows.failures-')) ?? 'none';
    return readFile(join(folder, name), 'utf8').catch(() => undefined);
  }

  async function importRows(csv: string, flags: string[] = [], { fake = connect(), isLive = false } = {}) {
    const recorded = makeTerminal({ isLive });
    const path = join(folder, 'rows.csv');
    await writeFile(path, csv);
    const exitCode = await run(['import', path, ...flags], recorded.terminal);
    return { fake, exitCode, failed: await readFailures(), ...recorded };
  }

  it('good rows, names as people write them → their trackers, a summary, no file of failures, exit code 0', async () => {
    const csv =
      '\uFEFFTracking Number,client_tracker_id,COURIER-CODE,recipient email,price\n' +
      `${NUMBER},order-1,us-post;cn-post,a@b.example,5\nLA680658838NL,,,,\n`;
    const { fake, exitCode, failed, lines, output } = await importRows(csv);
    const recipient = { email: 'a@b.example' };
    const courierCode = ['us-post', 'cn-post'];
    expect(exitCode).toBe(0);
    expect(fake.requests[0]?.body).toEqual([
      { trackingNumber: NUMBER, clientTrackerId: 'order-1', courierCode, recipient },
      { trackingNumber: 'LA680658838NL' },
    ]);
    expect(lines()).toEqual(['2 of 2 rows', '  created       2  new trackers']);
    expect([output.stderr, failed]).toEqual(['Columns that are not sent: price\n', undefined]);
  });

  it('rows that fail → a file of them as they were, with line and reason, exit code 1', async () => {
    const csv =
      'tracking_number,client_tracker_id,note\n' +
      'RR123456785CN,order-1,"a,\nb"\nx,order-2,\n\nLA680658838NL,order-1,taken\n';
    const { exitCode, failed, lines } = await importRows(csv);
    expect(exitCode).toBe(1);
    expect(failed?.split('\n')).toEqual([
      'tracking_number,client_tracker_id,note,line,status,reason',
      'x,order-2,,4,invalid,"validation_error: Expected `trackingNumber` to have 5 to 50 characters, got a string of 1 character"',
      expect.stringMatching(/^LA680658838NL,order-1,taken,6,error,tracker_conflict: /),
      '',
    ]);
    expect(lines().slice(4)).toEqual([
      'Why',
      expect.stringMatching(/^ {7}1 {2}validation_error: Expected .* \(first in line 4\)$/),
      expect.stringMatching(/^ {7}1 {2}tracker_conflict: .* \(first in line 6\)$/),
      expect.stringMatching(/^Failed rows: .*rows\.failures-\d{8}-\d{6}-\d{3}\.csv$/),
    ]);
  });

  it('--json → an outcome a line, the summary on stderr', async () => {
    const { lines, output } = await importRows('trackingNumber\nRR123456785CN\nx\n', ['--json']);
    expect(lines().map((line) => JSON.parse(line))).toMatchObject([
      { line: 2, status: 'created', trackingNumber: NUMBER, trackerId: expect.any(String), errors: [] },
      { line: 3, status: 'invalid', trackerId: null, errors: [{ code: 'validation_error' }] },
    ]);
    expect(output.stderr).toContain('2 of 2 rows\n');
  });

  it('a terminal → a bar of all rows, and the result below it', async () => {
    const { output, lines } = await importRows(csvOf(250), [], { isLive: true });
    expect(output.stderr).toMatch(/█+░* 40% · 100 of 250 rows|100% · 250 of 250 rows/);
    expect(lines()[0]).toBe('250 of 250 rows');
  });

  it.each([
    ['', /rows\.csv to have a first line of names, got an empty file\n$/],
    ['number\nRR123456785CN\n', /to have a column trackingNumber in its first line, got number\n$/],
    ['trackingNumber\nRR123456785CN\n"open', /rows\.csv is no CSV: Quote Not Closed/],
  ])('%j → one sentence, and nothing is sent', async (csv, message) => {
    const { exitCode, output } = await importRows(csv);
    expect(exitCode).toBe(2);
    expect(output.stderr).toMatch(message);
  });

  it('Ctrl-C in the middle → how many rows were read, that running it again is safe, exit code 130', async () => {
    const fake = connect(createFakeTrackingService({ latencyMs: 50 }));
    const { terminal, interrupt, lines, output } = makeTerminal();
    const path = join(folder, 'rows.csv');
    await writeFile(path, csvOf(2000));
    const stop = setInterval(() => fake.requests.length > 0 && interrupt(), 5);
    expect(await run(['import', path], terminal)).toBe(130);
    clearInterval(stop);
    expect(lines()[0]).toMatch(/^\d{3} of 2000 rows$/);
    expect(output.stderr).toBe(
      'Stopped. Run the same command again to go on: what exists is found again, not created twice.\n',
    );
    expect(await readFailures()).toContain('aborted: The run was aborted');
  });

  it('many reasons → the five most frequent, and how many others', async () => {
    const fake = connect();
    for (let code = 0; code < 7; code += 1)
      fake.fail('trackers.createBulk', { status: 422, code: `code_${code}` });
    const { exitCode, lines } = await importRows(csvOf(750), [], { fake });
    expect(exitCode).toBe(1);
    expect(lines().filter((line) => line.includes('first in line'))).toHaveLength(5);
    expect(lines()).toContain('  and 2 other reasons');
  });

  it('rows that break the same rule of the same field → one reason; another field → another reason', async () => {
    const { lines } = await importRows(
      'trackingNumber,destinationCountryCode\nx,US\nxyz,US\nRR123456785CN,Narnia\n',
    );
    expect(lines().filter((line) => line.includes('first in line'))).toEqual([
      expect.stringMatching(/^ {7}2 {2}.*`trackingNumber`.*\(first in line 2\)$/),
      expect.stringMatching(/^ {7}1 {2}.*`destinationCountryCode`.*\(first in line 4\)$/),
    ]);
  });
});

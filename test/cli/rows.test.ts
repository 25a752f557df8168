// What spreadsheets and data libraries make of cells. A wrong id costs money, so a row is refused rather than sent.

import { describe, expect, it } from 'vitest';
import { useImportFolder } from './import-folder.ts';

const NUMBER = 'RR123456785CN';
const ID_COLUMNS = ['client_tracker_id', 'shipment_reference', 'order_number', 'destination_post_code'];
const { importRows } = useImportFolder();

/** Writes a cell of a CSV file. */
const quote = (cell: string) => `"${cell.replaceAll('"', '""')}"`;

/** Imports a file with one row; `cell` stands in the column of the tracking numbers, or in another column. */
function importCell(cell: string, column = 'tracking_number', flags: string[] = []) {
  const isNumber = column === 'tracking_number';
  const csv = isNumber
    ? `${column}\n${quote(cell)}\n`
    : `tracking_number,${column}\n${NUMBER},${quote(cell)}\n`;
  return importRows(csv, flags);
}

type Imported = Awaited<ReturnType<typeof importRows>>;

/** Expects that the file is refused, with a line that names row, column, value and what to do. */
function expectRefused({ exitCode, fake, output }: Imported, column: string, cell: string, advice: string) {
  expect(output.stderr).toContain(`  line 2: ${column} "${cell.replace(/\s/g, ' ')}" `);
  expect(output.stderr).toContain(advice);
  expect([exitCode, fake.requests]).toEqual([2, []]);
}

describe('a number that has lost digits or gained characters', () => {
  const FORMAT = 'format the column as text, and enter the number';
  const changed: [string, string][] = [
    ['9405511899561460000000', `${FORMAT} again`],
    ['12345678901234500', `${FORMAT} again`],
    ['794612345678.0', `${FORMAT} without decimals`],
    ['794612345678.00', `${FORMAT} without decimals`],
    ['794612345678,0', `${FORMAT} without decimals`],
    ['794612345678.', `${FORMAT} without decimals`],
    ['794,612,345,678', `${FORMAT} without separators`],
    ['7,94,61,23,45,678', `${FORMAT} without separators`],
    ['794.612.345.678', `${FORMAT} without separators`],
    ['794.612.345.678,00', `${FORMAT} without separators`],
    ["794'612'345'678", `${FORMAT} without separators`],
    ['794’612’345’678', `${FORMAT} without separators`],
    ['7.94612345678E11', `${FORMAT} again`],
    ['7.94612345678E+11', `${FORMAT} again`],
    ['7,94612E+11', `${FORMAT} again`],
    ['7.9e11', `${FORMAT} again`],
    ['1E+05', `${FORMAT} again`],
    ['1.2E5', `${FORMAT} again`],
    ['794612E6', `${FORMAT} again`],
    ['-7.94E+011', `${FORMAT} again`],
    ['.794612345678E12', `${FORMAT} again`],
  ];

  it.each(changed)(
    '%s in any column of ids → refused with line, column, value and advice',
    async (cell, advice) => {
      for (const column of ['tracking_number', ...ID_COLUMNS])
        expectRefused(await importCell(cell, column), column, cell, advice);
    },
  );

  it.each(['794 612 345 678', '794\u00a0612\u00a0345\u00a0678', '794\u202f612\u202f345\u202f678'])(
    '%j in a column of numbers → refused; as a post code → not refused by the command',
    async (cell) => {
      for (const column of ['tracking_number', ...ID_COLUMNS.slice(0, 3)])
        expectRefused(await importCell(cell, column), column, cell, `${FORMAT} without spaces`);
      expect((await importCell('110 001', 'destination_post_code')).fake.trackers).toHaveLength(1);
    },
  );

  it.each([
    'RR123E5CN',
    '1Z12345E0205271688',
    '9405511899561468285343',
    '94055118995614610',
    '1234567890123450',
    '123456789E1234',
    '1234E567',
    'E12345',
    '12345E',
    '1234.5678',
    '10.20.30',
    '12-34-56',
    '2026.001',
    '20261115',
  ])('%s → an id like any other, sent as it is', async (cell) => {
    for (const column of ['client_tracker_id', 'shipment_reference'])
      expect((await importCell(cell, column)).exitCode).toBe(0);
    const { exitCode, fake } = await importCell(cell);
    expect([exitCode, fake.trackers[0]?.trackingNumber]).toEqual([0, cell]);
  });

  it('--as-is → these ids are sent as they are; other faults are still refused', async () => {
    const { exitCode, fake, output } = await importCell('9405511899561460000000', undefined, ['--as-is']);
    expect([exitCode, output.stderr]).toEqual([0, '']);
    expect(fake.trackers).toMatchObject([{ trackingNumber: '9405511899561460000000' }]);
    const csv = `tracking_number,shipping_date\n1E5,15.11.2026\n`;
    const refused = await importRows(csv, ['--as-is']);
    expect(refused.exitCode).toBe(2);
    expect(refused.output.stderr).not.toMatch(/1E5|--as-is/);
  });

  it('an id that looks changed → the last line names --as-is; another fault → no such line', async () => {
    const { output } = await importCell('1E5');
    expect(output.stderr).toMatch(/\n {2}If all these ids are right as they are, pass --as-is\.\n$/);
    const other = await importRows(`tracking_number\n${NUMBER},box\n`);
    expect(other.output.stderr).not.toContain('--as-is');
  });

  it('text in other columns → not an id, sent as it is', async () => {
    const { exitCode, fake } = await importRows(`tracking_number,title,courier_name\n${NUMBER},1E5,1.0\n`);
    expect(exitCode).toBe(0);
    expect(fake.requests[0]?.body).toMatchObject([{ title: '1E5', courierName: '1.0' }]);
  });
});

describe('a cell of a million characters, in which nothing may be searched for again and again', () => {
  const size = 1_000_000;

  it.each<[string, string]>([
    ['digits', '1'.repeat(size)],
    ['digits and a letter', `${'1'.repeat(size)}x`],
    ['digits, a point and digits', `${'1'.repeat(size / 2)}.${'1'.repeat(size / 2)}`],
    ['digits and an exponent of many digits', `${'1'.repeat(size)}E${'1'.repeat(size)}`],
    ['digits and zeros', `${'1'.repeat(15)}${'0'.repeat(size)}x`],
    ['groups', `1${',000'.repeat(size / 4)}x`],
    ['groups with points', `1${'.000'.repeat(size / 4)}x`],
    ['groups with spaces', `1${' 000'.repeat(size / 4)}x`],
    ['spaces', `a${' '.repeat(size)}b`],
    ['signs of a narrow column', `${'#'.repeat(size)}x`],
    ['apostrophes', `'${"a'".repeat(size / 2)}`],
  ])('%s → one outcome, exit code 0, 1 or 2', async (_, cell) => {
    for (const column of ['tracking_number', 'order_number', 'title'])
      expect([0, 1, 2]).toContain((await importCell(cell, column)).exitCode);
  });
});

describe('marks of text', () => {
  const number = '9405511899561468285343';

  it.each([
    ['="…"', `="${number}"`],
    ['="…" in quotes', `"=""${number}"""`],
    ['="…" between spaces', ` ="${number}" `],
    ["a leading '", `'${number}`],
  ])('%s → the number, in each delimiter', async (_, cell) => {
    for (const delimiter of [',', ';', '\t', '|']) {
      const csv = `tracking_number${delimiter}client_tracker_id\n${cell}${delimiter}${cell}\n`;
      const flags = delimiter === '|' ? ['--delimiter', '|'] : [];
      const { exitCode, fake } = await importRows(csv, flags);
      expect(exitCode).toBe(0);
      expect(fake.requests[0]?.body).toEqual([{ trackingNumber: number, clientTrackerId: number }]);
    }
  });

  it('="…" in every cell, also in the names and where it is empty → each cell has its text', async () => {
    const csv =
      '="tracking_number",="title",="shipping date",="courier_code",="recipient_name"\n' +
      `="${number}",="a, ""b""",="2026-11-15",="us-post|cn-post",=""\n`.replace(
        '="a, ""b"""',
        '"=""a, """"b"""""""',
      );
    const { exitCode, fake, output } = await importRows(csv);
    expect([exitCode, output.stderr]).toEqual([0, '']);
    expect(fake.requests.at(-1)?.body).toEqual([
      {
        trackingNumber: number,
        title: 'a, "b"',
        shippingDate: '2026-11-15',
        courierCode: ['us-post', 'cn-post'],
      },
    ]);
  });

  it.each([
    ['="9.40551189956146E+21"', '9.40551189956146E+21'],
    ['="794612345678.0"', '794612345678.0'],
    ["'9405511899561460000000", '9405511899561460000000'],
  ])('%s: digits were lost before → refused', async (cell, value) => {
    expectRefused(await importCell(cell), 'tracking_number', value, 'format the column as text');
  });

  it.each(['=A1&B1', '=9405511899561468285343', '="9405" & "5118"', '="9405'])(
    '%s → a formula, refused in each column of ids; as a title, sent as it is',
    async (cell) => {
      for (const column of ['tracking_number', ...ID_COLUMNS])
        expectRefused(
          await importCell(cell, column),
          column,
          cell,
          'copy the column, and paste it as values',
        );
      expect((await importCell(cell, 'title')).fake.requests[0]?.body).toMatchObject([{ title: cell }]);
    },
  );

  it.each(['#N/A', '#NV', '#REF!', '#VALUE!', '#DIV/0!', '#NAME?', '########', 'Err:502'])(
    '%s → the error of a formula, refused',
    async (cell) => {
      expectRefused(await importCell(cell, 'order_number'), 'order_number', cell, 'correct the formula');
    },
  );

  it.each(['nan', 'None', 'NULL', '<NA>'])('%s as client_tracker_id → refused', async (cell) => {
    expectRefused(await importCell(cell, 'client_tracker_id'), 'client_tracker_id', cell, 'clear the cell');
  });

  it("'order-1' in single quotes → refused", async () => {
    expectRefused(
      await importCell("'order-1'", 'client_tracker_id'),
      'client_tracker_id',
      "'order-1'",
      'remove the apostrophe',
    );
  });

  it('a name that begins with an apostrophe → sent as it is', async () => {
    const { fake } = await importCell("'t Hooft", 'recipient_name');
    expect(fake.requests[0]?.body).toMatchObject([{ recipient: { name: "'t Hooft" } }]);
  });

  it('="…" in a row that fails → the same cell in the file of failures, which can be imported', async () => {
    const { failed = '' } = await importRows('tracking_number,client_tracker_id\nx,="0042"\n');
    expect(failed).toContain('\nx,"=""0042""",2,invalid,');
    const { fake } = await importRows(failed.replace('\nx,', `\n${NUMBER},`));
    expect(fake.requests[0]?.body).toEqual([{ trackingNumber: NUMBER, clientTrackerId: '0042' }]);
  });
});

describe('characters that cannot be seen', () => {
  it.each([
    ['\u200border-1', 'U+200B at position 1'],
    ['order\u00ad-1', 'U+00AD at position 6'],
    ['📦\u200b1', 'U+200B at position 2'],
    ['order\u00a01', 'U+00A0 at position 6'],
    ['order-1\u200e', 'U+200E at position 8'],
    [' order-1', 'U+0020 at position 1'],
    ['order-1 ', 'U+0020 at position 8'],
    ['order\n1', 'U+000A at position 6'],
  ])('%j as an id of any text → refused, with %s', async (cell, place) => {
    for (const column of ID_COLUMNS.slice(0, 3)) {
      const { exitCode, fake, output } = await importCell(cell, column);
      expect(output.stderr).toMatch(new RegExp(`line [23]: ${column} ".*" has the invisible character`));
      expect(output.stderr).toContain(`${place}; delete this character`);
      expect([exitCode, fake.requests]).toEqual([2, []]);
    }
  });

  it.each([
    ['\u200bRR123456785CN', 'U+200B at position 1'],
    ['RR\u2013123456785CN', 'U+2013 at position 3'],
    ['RR 123456785 CN', "' ' at position 3"],
  ])('%j as a tracking number → not sent, and the reason names %s', async (cell, place) => {
    const { exitCode, fake, failed, output } = await importCell(cell);
    expect([exitCode, fake.requests]).toEqual([1, []]);
    for (const text of [output.stdout, failed]) expect(text).toContain(`, got ${place}`);
  });

  it('an id with spaces inside → sent as it is', async () => {
    expect((await importCell('order 1 b', 'client_tracker_id')).exitCode).toBe(0);
  });
});

describe('the names of the columns again', () => {
  it.each([
    ['the same line', 'Tracking Number,title'],
    ['another case', 'TRACKING_NUMBER,TITLE'],
    ['other spaces and quotes', '" tracking number ", Title '],
    ['a byte order mark', '\uFEFF"tracking_number","title"'],
    ['single quotes', "'tracking_number','title'"],
    ['="…"', '="tracking_number",="title"'],
    ['another order', 'title,trackingNumber'],
    ['other columns', 'weight,tracking-number'],
    ['a name of this file in the column of the numbers', 'TITLE,box'],
  ])('%s → a fault of its own, nothing sent', async (_, header) => {
    const { exitCode, fake, output } = await importRows(
      `Tracking Number,title\n${NUMBER},a\n${header}\n${NUMBER},b\n`,
    );
    expect(output.stderr).toMatch(/^ {2}line 3: this line repeats the names of the columns; delete it$/m);
    expect([exitCode, fake.requests]).toEqual([2, []]);
  });

  it('a title that is a name of a column → sent', async () => {
    expect((await importRows(`tracking_number,title\n${NUMBER},Title\n`)).exitCode).toBe(0);
  });

  it('tab-separated → found, too', async () => {
    const csv = `tracking_number\ttitle\n${NUMBER}\ta\n\uFEFF"tracking_number"\t"title"\n`;
    expect((await importRows(csv)).output.stderr).toContain(
      'line 3: this line repeats the names of the columns',
    );
  });
});

describe('cells after the last column', () => {
  it.each([',', ',,,', ', ,', ',"",', ',=""'])('empty ones (%s) → ignored', async (extra) => {
    const { exitCode, fake, output } = await importRows(`tracking_number,title\n${NUMBER},1${extra}\n`);
    expect([exitCode, output.stderr, fake.trackers.length]).toEqual([0, '', 1]);
  });

  it('a full one after empty ones → refused', async () => {
    const { exitCode, fake, output } = await importRows(`tracking_number,title\n${NUMBER},1,,5\n`);
    expect(output.stderr).toContain('line 2: 4 fields, but the first line names 2 columns; ');
    expect([exitCode, fake.requests]).toEqual([2, []]);
  });
});

describe('quotes', () => {
  it.each([
    ['1/2" sensor', '1/2" sensor'],
    ['"Great" product, "best"', '"Great" product, "best"'],
    ['say "hi"', 'say "hi"'],
    ['"a ""b"" c"', 'a "b" c'],
    ['"a\tb"', 'a\tb'],
    ['" a "', ' a '],
    [' a ', 'a'],
  ])('a tab-separated file with %j → the title %j', async (field, title) => {
    const csv = `tracking_number\ttitle\tnote\n${NUMBER}\t${field}\t5" x 3"\nLA680658838NL\tb\t\n`;
    const { exitCode, fake } = await importRows(csv);
    expect(exitCode).toBe(0);
    expect(fake.requests[0]?.body).toEqual([
      { trackingNumber: NUMBER, title },
      { trackingNumber: 'LA680658838NL', title: 'b' },
    ]);
  });

  it('a quote that no other quote ends → the message names --no-quotes, with which the file is imported', async () => {
    const csv = `tracking_number\ttitle\n${NUMBER}\t"1/2 sensor\nLA680658838NL\tb\n`;
    const { exitCode, output } = await importRows(csv);
    expect(exitCode).toBe(2);
    expect(output.stderr).toMatch(/after line 1, a quote begins a field, .* pass --no-quotes\n$/);
    const { fake } = await importRows(csv, ['--no-quotes']);
    expect(fake.requests[0]?.body).toMatchObject([{ title: '"1/2 sensor' }, { title: 'b' }]);
  });

  it('--no-quotes and commas → quotes are text', async () => {
    const { fake } = await importRows(`tracking_number,title\n${NUMBER}, 1/2" sensor \n`, ['--no-quotes']);
    expect(fake.requests[0]?.body).toMatchObject([{ title: '1/2" sensor' }]);
  });

  it.each([
    ['1/2" sensor', 'has a quote in a field that does not begin with a quote'],
    ['"a" b', 'has text after the quote that ends a field'],
    ['a="b"', 'has a quote in a field that does not begin with a quote'],
  ])('a comma-separated file with %s → refused with the line', async (field, fault) => {
    const csv = `tracking_number,title\n${NUMBER},"a\r\nb"\n${NUMBER},${field}\n`;
    const { exitCode, fake, output } = await importRows(csv);
    expect(output.stderr).toContain(`rows.csv is not valid CSV: line 4 ${fault}`);
    expect([exitCode, fake.requests]).toEqual([2, []]);
  });
});

describe('a workbook', () => {
  it.each([
    ['.xlsx', Buffer.from('PK\u0003\u0004\u0014\u0000\u0006\u0000', 'latin1')],
    ['.xls', Buffer.from('\u00d0\u00cf\u0011\u00e0\u00a1\u00b1\u001a\u00e1', 'latin1')],
  ])('%s → how to save it, exit code 2', async (_, bytes) => {
    for (const flags of [[], ['--encoding', 'utf-16le']]) {
      const { exitCode, fake, output } = await importRows(bytes, flags);
      expect(output.stderr).toMatch(/rows\.csv is an Excel workbook .*; save it as CSV UTF-8, .*\n$/);
      expect([exitCode, fake.requests]).toEqual([2, []]);
    }
  });
});

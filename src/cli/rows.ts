import { type TrackerInput, trackerInputSchema } from 'tracking-client';
import { unwrapCell } from './csv.ts';
import { CommandError, plain } from './terminal.ts';

/** The fields of a tracker that a column can have. */
export const FIELDS: readonly string[] = [
  ...Object.keys(trackerInputSchema.shape).filter((name) => !['recipient', 'settings'].includes(name)),
  'recipientEmail',
  'recipientName',
];
const FIELD_BY_NAME = new Map(FIELDS.map((name) => [normalizeName(name), name]));
const MAX_NAMES_LENGTH = 200;
const MAX_VALUE_LENGTH = 50;

/** The ids that may be any text; the service has rules for the characters of the other ids. */
const FREE_IDS = ['clientTrackerId', 'shipmentReference', 'orderNumber'];
const NUMBERS = ['trackingNumber', ...FREE_IDS];
const IDS = [...NUMBERS, 'destinationPostCode'];

interface Change {
  readonly fields: readonly string[];
  readonly pattern: RegExp;
  /** The fault that the pattern finds. */
  readonly fault: string;
  readonly advice: string;
}

/** The ways in which spreadsheets and data libraries change an id. */
const CHANGES: readonly Change[] = [
  {
    fields: IDS,
    pattern: /^\d{15}0{2,}$/,
    fault: 'has only zeros after its 15th digit, because spreadsheets keep 15 digits',
    advice: 'format the column as text, and enter the number again',
  },
  {
    fields: IDS,
    // An exponent from 300 does not match: no spreadsheet reads "1234E567" as a number, so it is an id.
    pattern: /^[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)E[-+]?[0-2]?\d{1,2}$/i,
    fault: 'is a number with an exponent, and may have lost digits',
    advice: 'format the column as text, and enter the number again',
  },
  {
    fields: IDS,
    pattern: /^[-+]?\d+[.,]0*$/,
    fault: 'ends with a decimal point, or with zeros after it',
    advice: 'format the column as text, and enter the number without decimals',
  },
  {
    fields: IDS,
    // Some countries write two digits in a group, but three in the last group.
    pattern: /^[-+]?\d{1,3}(?:,(?:\d{2,3},)*\d{3}|([.'’])\d{3}(?:\1\d{3})*)(?:[.,]0*)?$/,
    fault: 'is a number whose digits are separated in groups',
    advice: 'format the column as text, and enter the number without separators',
  },
  {
    // Some post codes have a space in their middle.
    fields: NUMBERS,
    pattern: /^[-+]?\d{1,3}(?:\s\d{3})+(?:[.,]0*)?$/,
    fault: 'is a number whose digits are separated in groups',
    advice: 'format the column as text, and enter the number without spaces',
  },
  {
    fields: IDS,
    pattern: /^=/,
    fault: 'is a formula, and not its result',
    advice: 'copy the column, and paste it as values',
  },
  {
    fields: IDS,
    pattern: /^(?:#N\/A|#NV|#[\p{Lu}\d/_]+[!?]|#{2,}|Err:\d+)$/u,
    fault: 'is what a spreadsheet shows for a wrong formula or in a narrow column',
    advice: 'correct the formula, or widen the column',
  },
  {
    fields: ['clientTrackerId'],
    pattern: /^(?:nan|none|null|<na>)$/i,
    fault: 'stands for a missing value',
    advice: 'clear the cell',
  },
  { fields: IDS, pattern: /^'/, fault: 'begins with an apostrophe', advice: 'remove the apostrophe' },
];

/** A space at the beginning or end, and all other characters that cannot be seen. */
const INVISIBLE = /^ | $|[\p{Cc}\p{Cf}]|(?! )\p{Z}/u;

/** The columns of a file and their fields. */
export interface Layout {
  readonly columns: readonly string[];
  /** The field of each column; undefined for a column that is not sent. */
  readonly fields: readonly (string | undefined)[];
  /** The names of all columns and fields, normalized. */
  readonly names: ReadonlySet<string>;
}

/** Also removes quotes: a later line that repeats the names may quote them differently. */
function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[\s"'_-]/g, '');
}

export function readLayout(columns: readonly string[], fileName: string): Layout {
  const fields = columns.map((name) => FIELD_BY_NAME.get(normalizeName(name)));
  if (!fields.includes('trackingNumber')) {
    const found = plain(columns.join(', ')).slice(0, MAX_NAMES_LENGTH);
    throw new CommandError(
      `${fileName} has no column trackingNumber; give the column of the tracking numbers this name in the first line, which is now: ${found}`,
    );
  }
  const keys = columns.map((name, index) => fields[index] ?? name);
  const twice = keys.find((name, index) => name !== '' && keys.indexOf(name) !== index);
  if (twice !== undefined)
    throw new CommandError(
      `${fileName} has the column ${plain(twice).slice(0, MAX_NAMES_LENGTH)} twice; remove or rename one`,
    );
  return { columns, fields, names: new Set([...columns, ...FIELDS].map(normalizeName)) };
}

/** Reads the cells that are sent. Removes the apostrophe with which spreadsheets mark an id as text. */
function readCells(cells: readonly string[], { columns, fields }: Layout) {
  return fields.flatMap((field, index) => {
    const cell = unwrapCell(cells[index] ?? '');
    if (field === undefined || cell === '') return [];
    const text = IDS.includes(field) ? cell.replace(/^'(?=[^']+$)/, '') : cell;
    return [{ field, column: plain(columns[index]), text }];
  });
}

export function buildInput(cells: readonly string[], layout: Layout): TrackerInput {
  const texts: Readonly<Record<string, string>> = Object.fromEntries(
    readCells(cells, layout).map(({ field, text }) => [field, text]),
  );
  const { trackingNumber = '', courierCode, recipientEmail: email, recipientName: name, ...others } = texts;
  const recipient = email === undefined && name === undefined ? undefined : { email, name };
  return { ...others, trackingNumber, courierCode: courierCode?.split(/[\s;|]+/).filter(Boolean), recipient };
}

interface Fault {
  readonly text: string;
  /** True if an id looks changed; then only the user can know whether it is right. */
  readonly isDoubt?: boolean;
}

/**
 * Finds the faults that an unquoted delimiter, a repeated first line or a spreadsheet causes in a row.
 *
 * @param maxCells - number of columns, including those that an earlier import added
 */
export function findFaults(cells: readonly string[], layout: Layout, maxCells: number): Fault[] {
  const sent = readCells(cells, layout);
  const number = sent.find(({ field }) => field === 'trackingNumber')?.text ?? '';
  const isHeader =
    layout.names.has(normalizeName(number)) || cells.some((cell) => normalizeName(cell) === 'trackingnumber');
  if (isHeader) return [{ text: 'this line repeats the names of the columns; delete it' }];
  const faults: Fault[] = [];
  if (cells.slice(maxCells).some((cell) => unwrapCell(cell) !== ''))
    faults.push({
      text: `${cells.length} fields, but the first line names ${maxCells} columns; if a field contains the delimiter, put quotes around the field, or set another --delimiter`,
    });
  for (const { field, column, text } of sent) {
    const isDoubt = field !== 'shippingDate';
    const fault = isDoubt ? findIdFault(field, text) : findDateFault(text);
    const value = plain(text).slice(0, MAX_VALUE_LENGTH);
    if (fault !== undefined) faults.push({ text: `${column} "${value}" ${fault}`, isDoubt });
  }
  return faults;
}

function findDateFault(text: string): string | undefined {
  const isOfSpreadsheet = /^(?!\d{4}-)\d{1,4}[./-]\d{1,2}[./-]\d{1,4}/.test(text);
  return isOfSpreadsheet ? 'must have the form YYYY-MM-DD, as in 2026-11-15' : undefined;
}

function findIdFault(field: string, text: string): string | undefined {
  const change = CHANGES.find(({ fields, pattern }) => fields.includes(field) && pattern.test(text));
  if (change !== undefined) return `${change.fault}; ${change.advice}`;
  const index = FREE_IDS.includes(field) ? text.search(INVISIBLE) : -1;
  if (index < 0) return undefined;
  const code = Number(text.codePointAt(index)).toString(16).toUpperCase().padStart(4, '0');
  const position = [...text.slice(0, index)].length + 1;
  return `has the invisible character U+${code} at position ${position}; delete this character`;
}

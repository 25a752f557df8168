import { constants, createReadStream, fstatSync, rmSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { addAbortSignal, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { stringify } from 'csv-stringify/sync';
import type { BulkOutcome } from 'tracking-client';
import { CommandError, formatReason, plain } from './terminal.ts';

/** A pipe cannot be read twice, so its bytes are kept in memory. */
const MAX_PIPE_MIB = 64;
/** Some spreadsheets name the delimiter in the first line of a CSV file. */
const SEPARATOR_LINE = /^\uFEFF?"?sep=([^"\r\n])"?[,;\t]*[\r\n]/i;

/** The first bytes of files that spreadsheets write instead of CSV: ZIP (.xlsx, .ods) and OLE2 (.xls). */
const WORKBOOK_STARTS = ['PK\u0003\u0004', '\u00d0\u00cf\u0011\u00e0'];
/** A formula such as `="0042"`. Some exports write numbers in this way, so that spreadsheets keep all digits. */
const TEXT_FORMULA = /^="((?:[^"]|"")*)"$/;

/** A row of the file. `line` is the number that an editor shows for the row's last line. */
export interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

export type CsvInput = Awaited<ReturnType<typeof openCsv>>;

export function isStandardInput(path: string): boolean {
  return path === '-' || path === '/dev/stdin';
}

/** Returns the text of a formula such as `="0042"`, and any other cell as it is. */
export function unwrapCell(cell: string): string {
  return TEXT_FORMULA.exec(cell)?.[1]?.replaceAll('""', '"') ?? cell;
}

interface CsvOptions {
  readonly encoding: string;
  /** Default: detected. */
  readonly delimiter: string | undefined;
  /** False if quotes are ordinary characters. */
  readonly hasQuotes: boolean;
}

/** Opens a file and reads its first line, the names of the columns. */
export async function openCsv(path: string, options: CsvOptions, signal: AbortSignal) {
  const { encoding, hasQuotes } = options;
  const name = isStandardInput(path) ? 'Standard input' : path;
  try {
    const { identity, chunks } = await openSource(path, name, signal);
    const createDecoder = () => new TextDecoder(encoding, { ignoreBOM: true });
    const decoded = async function* () {
      const decoder = createDecoder();
      for await (const chunk of chunks()) yield decoder.decode(chunk, { stream: true });
      yield decoder.decode();
    };
    let bytes = Buffer.alloc(0);
    for await (bytes of chunks()) break;
    if (WORKBOOK_STARTS.includes(bytes.toString('latin1', 0, 4)))
      throw new CommandError(
        `${name} is an Excel workbook or another packed file; save it as CSV UTF-8, and import the CSV file`,
      );
    const start = createDecoder().decode(bytes, { stream: true });
    const separator = SEPARATOR_LINE.exec(start);
    const text = start.slice(separator?.[0].length);
    const delimiter = options.delimiter ?? separator?.[1] ?? detectDelimiter(text);
    const fromLine = separator === null ? 1 : 2;
    const rows = (from: number) =>
      parseRows(Readable.from(decoded()), { name, encoding, delimiter, hasQuotes, fromLine, from });
    const { value: first } = await rows(1).next();
    if (first === undefined)
      throw new CommandError(`${name} is empty; begin the file with a line that names the columns`);
    return {
      name,
      columns: first.cells.map(unwrapCell),
      delimiter,
      /** True when the file of failures needs a byte order mark, without which spreadsheets misread UTF-8. */
      needsBom: start.startsWith('\uFEFF') || encoding !== 'utf-8',
      /** Device and inode show whether another path leads to the same file. */
      identity,
      /** Reads the rows below the line of column names, from the first row at each call. */
      rows: () => rows(2),
    };
  } catch (error) {
    if (error instanceof CommandError || signal.aborted) throw error;
    throw new CommandError(`Could not read ${name}: ${formatReason(error)}`);
  }
}

/** Opens bytes that can be read more than once. */
async function openSource(path: string, name: string, signal: AbortSignal) {
  const identity = isStandardInput(path) ? fstatSync(0) : statSync(path);
  if (identity.isDirectory()) throw new CommandError(`${path} is a folder; give the path of a CSV file`);
  if (identity.isFile() && !isStandardInput(path)) return { identity, chunks: () => createReadStream(path) };
  const stream = isStandardInput(path) ? process.stdin : createReadStream(path);
  const bytes = await readPipe(addAbortSignal(signal, stream), name);
  return { identity, chunks: () => [bytes] };
}

async function readPipe(stream: AsyncIterable<Buffer>, name: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > MAX_PIPE_MIB * 1024 * 1024)
      throw new CommandError(
        `${name} has more than ${MAX_PIPE_MIB} MiB, the maximum for standard input and pipes; save the input as a file, and import the file`,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function detectDelimiter(text: string): string {
  const line = text.split(/[\r\n]+/).find((candidate) => candidate.trim() !== '') ?? '';
  const unquoted = line.replace(/"[^"]*"/g, '');
  const count = (delimiter: string) => unquoted.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, delimiter) => (count(delimiter) > count(best) ? delimiter : best));
}

/**
 * Describes the two usual errors of `csv-parse` in our own words, because its messages name fields by their position from 0 and
 * quote parts of a row.
 */
function describeCsvError({ code, message }: CsvError, line: number, lastLine: number): string {
  if (code === 'CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE')
    return `line ${line} has text after the quote that ends a field`;
  if (code === 'CSV_QUOTE_NOT_CLOSED')
    return `after line ${lastLine}, a quote begins a field, but no quote ends the field`;
  return plain(message);
}

interface ParserOptions extends CsvOptions {
  readonly name: string;
  readonly delimiter: string;
  /** The first line to read, from 1. */
  readonly fromLine: number;
  /** The first row to read, from 1. */
  readonly from: number;
}

interface ParsedRecord {
  readonly record: readonly string[];
  readonly raw: string;
  readonly info: { readonly lines: number };
}

async function* parseRows(source: Readable, options: ParserOptions): AsyncGenerator<Row, void, undefined> {
  const { name, encoding, delimiter, hasQuotes, fromLine, from } = options;
  const refuse = (fault: string) =>
    new CommandError(
      `${name} is not valid CSV: ${fault}. If a field contains a quote, double this quote, and put the field in quotes, ` +
        'as in "a ""b"" c". If quotes are ordinary characters in this file, pass --no-quotes',
    );
  // Programs that write tab-separated files do not put quotes around a field that contains a quote, such as `1/2" bolt`.
  const isTabSeparated = delimiter === '\t';
  const parser = parse({
    delimiter,
    from,
    from_line: fromLine,
    // Without this option, only the kind of line break that occurs first in the file would end a row.
    record_delimiter: ['\r\n', '\n', '\r'],
    bom: true,
    info: true,
    raw: true,
    quote: hasQuotes ? '"' : false,
    relax_quotes: true,
    // With `trim`, `csv-parse` refuses text after a closing quote in spite of `relax_quotes`.
    trim: !isTabSeparated,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
  });
  source.on('error', (error) => parser.destroy(error));
  let countedTwice = 0;
  let lastLine = from - 1;
  try {
    for await (const found of source.pipe(parser)) {
      // Safe cast: with `info` and `raw` and without `columns`, `csv-parse` yields an array of texts, its source and its position.
      const { record, raw, info } = found as ParsedRecord;
      // Inside quotes, `csv-parse` counts CRLF as two lines.
      countedTwice += record.join().match(/\r\n/g)?.length ?? 0;
      const line = info.lines - countedTwice;
      lastLine = line;
      // Decoders write U+FFFD for bytes that they cannot read: the decoder above, or a program that converted the file before.
      if (record.join().includes('\uFFFD'))
        throw new CommandError(
          `Line ${line} of ${name} is not ${encoding.toUpperCase()} text; ` +
            'if a spreadsheet wrote the file, try --encoding latin1 or utf-16le',
        );
      const isQuoted = (cell: string) => raw.includes(`"${cell.replaceAll('"', '""')}"`);
      const isStray = (cell: string) => cell.includes('"') && !TEXT_FORMULA.test(cell) && !isQuoted(cell);
      if (hasQuotes && !isTabSeparated && record.some(isStray))
        throw refuse(`line ${line} has a quote in a field that does not begin with a quote`);
      yield {
        line,
        cells: isTabSeparated ? record.map((cell) => (isQuoted(cell) ? cell : cell.trim())) : record,
      };
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (!(error instanceof CsvError))
      throw new CommandError(`Could not read ${name}: ${formatReason(error)}`);
    throw refuse(describeCsvError(error, Number(error['lines']) - countedTwice, lastLine));
  } finally {
    source.destroy();
  }
}

/** The file contains names and addresses. */
const OWNER_ONLY_MODE = 0o600;

const FAILURE_COLUMNS: readonly string[] = ['line', 'status', 'reason'];

/** Removes the columns that an earlier import added. */
export function removeFailureColumns(columns: readonly string[]): readonly string[] {
  const hasThem = columns.slice(-FAILURE_COLUMNS.length).join() === FAILURE_COLUMNS.join();
  return hasThem ? columns.slice(0, -FAILURE_COLUMNS.length) : columns;
}

/**
 * Rows with the same mistake share a key: our message up to ", got", or the code (the service's messages differ by row) with the
 * status, because after Ctrl-C the same code stands for rows that were sent and rows that were not.
 */
function findReasonKey({ status, errors }: BulkOutcome): string {
  const { code = '', message = '' } = errors?.[0] ?? {};
  return status === 'invalid' ? String(message).replace(/, got .*$/s, '') : `${status} ${code}`;
}

/** Stores the rows that failed, unchanged, with the reasons. */
export type FailuresFile = Awaited<ReturnType<typeof openFailures>>;

/** Creates the file. An existing file is replaced only with `overwrite`; the input is never replaced, whatever its name is. */
export async function openFailures(path: string, input: CsvInput, overwrite: boolean) {
  const { identity, delimiter, needsBom } = input;
  const columns = removeFailureColumns(input.columns);
  const { handle, isFile, isPrivate } = await openForWriting(path, identity, overwrite);
  /** For each reason, the number of rows, the first message and the line of that message. */
  const reasons = new Map<string, { text: string; line: number; count: number }>();
  let count = 0;
  let size = 0;

  const add = async (outcome: BulkOutcome, { line, cells }: Row) => {
    const errors = outcome.errors ?? [];
    const reason = plain(
      errors.map(({ code, message }) => (message ? `${code}: ${message}` : code)).join('; '),
    );
    const key = findReasonKey(outcome);
    const known = reasons.get(key) ?? { text: reason, line, count: 0 };
    reasons.set(key, { ...known, count: known.count + 1 });
    // An apostrophe in front keeps spreadsheets from running a reason as a formula. Imported cells stay as they are for the next
    // import.
    const safeReason = /^[=+\-@＝＋－＠]/.test(reason) ? `'${reason}` : reason;
    const record = [...columns.map((_, index) => cells[index] ?? ''), line, outcome.status, safeReason];
    const isFirst = count === 0;
    const records = isFirst ? [[...columns, ...FAILURE_COLUMNS], record] : [record];
    // Quote cells with outer spaces: the next import trims unquoted cells. Also quote cells with any common delimiter:
    // a spreadsheet that splits at another delimiter could run the second part of `a,=1+1` as a formula.
    const quotedMatch = /^\s|\s$|[,;\t]/;
    const text = stringify(records, { delimiter, bom: isFirst && needsBom, quoted_match: quotedMatch });
    try {
      await handle.writeFile(text);
    } catch (error) {
      // Half a row could later be imported as a different row.
      await handle.truncate(size).catch(() => {});
      throw error;
    }
    size += Buffer.byteLength(text);
    count += 1;
  };

  /** Closes the file; removes it if no row failed, unless it is a device such as /dev/null. */
  const close = async () => {
    await handle.close();
    if (count > 0 || !isFile) return;
    try {
      rmSync(path, { force: true });
    } catch {
      // In a read-only folder, a file can be replaced but not removed. It is empty.
    }
  };
  return { path, isPrivate, reasons, count: () => count, add, close };
}

async function openForWriting(path: string, input: Stats, overwrite: boolean) {
  let handle: FileHandle | undefined;
  try {
    // `wx` and O_NOFOLLOW make `open` fail on a link that somebody else has planted.
    const replace = constants.O_WRONLY | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
    handle = await open(path, overwrite ? replace : 'wx', OWNER_ONLY_MODE);
    const stats = await handle.stat();
    if (stats.dev === input.dev && stats.ino === input.ino)
      throw new CommandError('--failures names the CSV file that is imported; choose another file');
    if (!stats.isFile()) return { handle, isFile: false, isPrivate: true };
    await handle.truncate();
    const limitAccess = handle.chmod(OWNER_ONLY_MODE).then(
      () => true,
      // Some network drives, such as CIFS, refuse to change the mode of a file.
      () => (stats.mode & ~OWNER_ONLY_MODE & 0o777) === 0,
    );
    return { handle, isFile: true, isPrivate: await limitAccess };
  } catch (error) {
    await handle?.close();
    if (error instanceof CommandError) throw error;
    if (Object(error).code === 'EEXIST')
      throw new CommandError(
        `${path} exists already; choose another file for --failures, or replace this one with --overwrite`,
      );
    throw new CommandError(
      `Could not write ${path}: ${formatReason(error)}; choose another file with --failures`,
    );
  }
}

import { constants, createReadStream, fstatSync, openSync, type Stats } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import { CommandError, formatReason } from './terminal.ts';
import { plain } from './text.ts';

/** A row; its line as an editor counts, the last one of a row of several. */
export interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

/** The rows of a file or a pipe, read from end to end before the first one is handed out. */
export interface CsvInput {
  readonly columns: readonly string[];
  readonly total: number;
  readonly delimiter: string;
  /** True where a spreadsheet takes UTF-8 for another encoding unless a byte order mark says so. */
  readonly needsBom: boolean;
  /** Names the file whatever it is called. */
  readonly identity: Stats;
  rows(): AsyncGenerator<Row, void, undefined>;
  close(): Promise<void>;
}

export interface CsvOptions {
  readonly encoding: string;
  /** Default: the one that the first line has most of. */
  readonly delimiter?: string | undefined;
  readonly signal: AbortSignal;
}

/** True for the two names of standard input, which a terminal may hold open without saying anything. */
export function isStandardInput(path: string): boolean {
  return path === '-' || path === '/dev/stdin';
}

/**
 * Copies the input into a file that nobody else can read, for a pipe cannot be read twice, and checks it whole: a mistake
 * in its last line is found before anything is sent.
 */
export async function readCsv(path: string, options: CsvOptions): Promise<CsvInput> {
  const { encoding, signal } = options;
  const name = isStandardInput(path) ? 'Standard input' : path;
  const start = { text: '' };
  let copy: FileHandle | undefined;
  try {
    const { stream, identity } = openSource(path);
    const file = await openPrivateFile();
    copy = file;
    const decode = (source: AsyncIterable<Buffer>) => decoded(source, { encoding, name, start });
    const write = async (texts: AsyncIterable<string>) => {
      for await (const text of texts) await file.writeFile(text);
    };
    await pipeline(stream, decode, write, { signal });
    const delimiter = options.delimiter ?? detectDelimiter(start.text);
    const { columns, total } = await checkRows(parseRows(file, name, delimiter), name);
    const needsBom = start.text.startsWith('\uFEFF') || encoding !== 'utf-8';
    const rows = async function* () {
      let isHead = true;
      for await (const row of parseRows(file, name, delimiter)) {
        if (!isHead) yield row;
        isHead = false;
      }
    };
    return { columns, total, delimiter, needsBom, identity, rows, close: () => file.close() };
  } catch (error) {
    await copy?.close();
    if (error instanceof CommandError || signal.aborted) throw error;
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT' && copy === undefined)
      throw new CommandError(`There is no file ${path}`);
    throw new CommandError(`Could not read ${name}: ${formatReason(error)}`);
  }
}

function openSource(path: string): { stream: Readable; identity: Stats } {
  if (isStandardInput(path)) return { stream: process.stdin, identity: fstatSync(0) };
  // Without O_NONBLOCK, a FIFO would block the process until somebody writes to it, Ctrl-C or not.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const identity = fstatSync(fd);
  if (identity.isDirectory()) throw new CommandError(`Expected ${path} to be a file, got a folder`);
  return { stream: identity.isFIFO() ? new Socket({ fd }) : createReadStream('', { fd }), identity };
}

/** Makes a file that has no name any more, so that nothing stays behind however the process ends. */
async function openPrivateFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `tracking-client-${crypto.randomUUID()}.csv`);
  try {
    const file = await open(path, 'wx+', 0o600);
    await rm(path);
    return file;
  } catch (error) {
    throw new CommandError(`Could not make a temporary file in ${tmpdir()}: ${formatReason(error)}`);
  }
}

/** Decodes the input, and remembers where it starts; rejects bytes that the encoding does not have. */
async function* decoded(
  source: AsyncIterable<Buffer>,
  { encoding, name, start }: { encoding: string; name: string; start: { text: string } },
): AsyncGenerator<string, void, undefined> {
  const strict = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  // Finds the line of what the strict one rejects.
  const lenient = new TextDecoder(encoding, { ignoreBOM: true });
  let lines = 1;
  const checked = (chunk: Buffer | undefined) => {
    const text = lenient.decode(chunk, { stream: chunk !== undefined });
    try {
      strict.decode(chunk, { stream: chunk !== undefined });
    } catch {
      const line = lines + countLineEnds(text.slice(0, text.indexOf('\uFFFD')));
      const advice = 'If a spreadsheet wrote it, try --encoding latin1 or utf-16le';
      throw new CommandError(
        `Expected ${name} to be ${encoding.toUpperCase()} text, got other bytes in line ${line}. ${advice}`,
      );
    }
    lines += countLineEnds(text);
    start.text ||= text;
    return text;
  };
  for await (const chunk of source) yield checked(chunk);
  yield checked(undefined);
}

function countLineEnds(text: string): number {
  return text.match(/\r\n|\n|\r/g)?.length ?? 0;
}

/** Of the delimiters that spreadsheets write, the one that stands most often between the names in the first line. */
function detectDelimiter(text: string): string {
  const line = text.split(/[\r\n]+/).find((candidate) => candidate.trim() !== '') ?? '';
  const unquoted = line.replace(/"[^"]*"/g, '');
  const count = (delimiter: string) => unquoted.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, delimiter) => (count(delimiter) > count(best) ? delimiter : best));
}

/** Reads a file from its start; a stream would close it in the end. */
async function* readChunks(file: FileHandle): AsyncGenerator<Buffer, void, undefined> {
  for (let position = 0; ; ) {
    const { buffer, bytesRead } = await file.read({ position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

async function* parseRows(
  file: FileHandle,
  name: string,
  delimiter: string,
): AsyncGenerator<Row, void, undefined> {
  const source = Readable.from(readChunks(file));
  const parser = parse({
    delimiter,
    bom: true,
    info: true,
    trim: true,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
  });
  source.on('error', (error) => parser.destroy(error));
  try {
    for await (const found of source.pipe(parser)) {
      // With `info` and without `columns`, a record is an array of texts beside its place in the file.
      const { record, info } = found as { record: readonly string[]; info: { readonly lines: number } };
      yield { line: info.lines, cells: record };
    }
  } catch (error) {
    if (error instanceof CsvError) throw new CommandError(`${name} is no CSV: ${plain(error.message)}`);
    throw error;
  } finally {
    source.destroy();
  }
}

const MAX_NAMED_LINES = 5;

/** Counts the rows; one with more fields than columns would lose some, most likely for want of quotes. */
async function checkRows(rows: AsyncIterable<Row>, name: string) {
  let columns: readonly string[] | undefined;
  let total = 0;
  const longLines: number[] = [];
  for await (const { line, cells } of rows) {
    if (columns === undefined) {
      // Spreadsheets end lines with empty fields.
      columns = cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);
      continue;
    }
    total += 1;
    if (cells.slice(columns.length).some((cell) => cell !== '')) longLines.push(line);
  }
  if (columns === undefined)
    throw new CommandError(`Expected ${name} to have a first line of names, got an empty file`);
  if (longLines.length > 0) {
    const lines = longLines.slice(0, MAX_NAMED_LINES).join(', ');
    const more = longLines.length > MAX_NAMED_LINES ? ` and ${longLines.length - MAX_NAMED_LINES} more` : '';
    const expectation = `Expected each row of ${name} to have at most ${columns.length} fields, as its first line`;
    throw new CommandError(
      `${expectation}, got more in lines ${lines}${more}. A field that holds the delimiter needs quotes around it`,
    );
  }
  return { columns, total };
}

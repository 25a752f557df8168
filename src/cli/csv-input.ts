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

/** A row of the file. `line` is the number that an editor shows for the row's last line. */
export interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

export interface CsvInput {
  readonly name: string;
  readonly columns: readonly string[];
  readonly total: number;
  readonly delimiter: string;
  /** True when the file of failures needs a byte order mark, because spreadsheets otherwise misread its UTF-8. */
  readonly needsBom: boolean;
  /** Identifies the file under all of its names. */
  readonly identity: Stats;
  rows(): AsyncGenerator<Row, void, undefined>;
  close(): Promise<void>;
}

interface CsvOptions {
  readonly encoding: string;
  readonly delimiter?: string | undefined;
  readonly signal: AbortSignal;
}

export function isStandardInput(path: string): boolean {
  return path === '-' || path === '/dev/stdin';
}

/**
 * Checks the whole input, so that a mistake in its last line is found before anything is sent. A pipe cannot be read
 * twice, so the input is copied into a file that nobody else can read.
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
    const decoded = (source: AsyncIterable<Buffer>) => decode(source, { encoding, name, start });
    const write = async (texts: AsyncIterable<string>) => {
      for await (const text of texts) await file.writeFile(text);
    };
    await pipeline(stream, decoded, write, { signal });
    const delimiter = options.delimiter ?? detectDelimiter(start.text);
    let columns: readonly string[] | undefined;
    let total = -1;
    for await (const { cells } of parseRows(file, name, delimiter, 1)) {
      columns ??= cells;
      total += 1;
    }
    if (columns === undefined)
      throw new CommandError(`Expected ${name} to have a first line of names, got an empty file`);
    const needsBom = start.text.startsWith('\uFEFF') || encoding !== 'utf-8';
    const rows = () => parseRows(file, name, delimiter, 2);
    return { name, columns, total, delimiter, needsBom, identity, rows, close: () => file.close() };
  } catch (error) {
    await copy?.close();
    if (error instanceof CommandError || signal.aborted) throw error;
    throw new CommandError(`Could not read ${name}: ${formatReason(error)}`);
  }
}

function openSource(path: string): { stream: Readable; identity: Stats } {
  if (isStandardInput(path)) return { stream: process.stdin, identity: fstatSync(0) };
  // Without O_NONBLOCK, a FIFO would block the process until somebody writes to it, and Ctrl-C would not help.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const identity = fstatSync(fd);
  if (identity.isDirectory()) throw new CommandError(`Expected ${path} to be a file, got a folder`);
  return { stream: identity.isFIFO() ? new Socket({ fd }) : createReadStream('', { fd }), identity };
}

/** Creates a file and removes its name at once, so that nothing stays behind however the process ends. */
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

async function* decode(
  source: AsyncIterable<Buffer>,
  { encoding, name, start }: { encoding: string; name: string; start: { text: string } },
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder(encoding, { ignoreBOM: true });
  let lines = 1;
  const decodeChunk = (chunk?: Buffer) => {
    const text = decoder.decode(chunk, { stream: chunk !== undefined });
    // U+FFFD marks a character that this decoder, or a program that converted the file before, could not read.
    const lost = text.indexOf('\uFFFD');
    lines += (lost < 0 ? text : text.slice(0, lost)).match(/\r\n|\n|\r/g)?.length ?? 0;
    start.text ||= text;
    if (lost < 0) return text;
    const advice = 'If a spreadsheet wrote the file, try --encoding latin1 or utf-16le';
    throw new CommandError(
      `Expected ${name} to be ${encoding.toUpperCase()} text, got other bytes in line ${lines}. ${advice}`,
    );
  };
  for await (const chunk of source) yield decodeChunk(chunk);
  yield decodeChunk();
}

function detectDelimiter(text: string): string {
  const line = text.split(/[\r\n]+/).find((candidate) => candidate.trim() !== '') ?? '';
  const unquoted = line.replace(/"[^"]*"/g, '');
  const count = (delimiter: string) => unquoted.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, delimiter) => (count(delimiter) > count(best) ? delimiter : best));
}

/** Reads a file from its start and leaves it open; a stream would close it. */
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
  from: number,
): AsyncGenerator<Row, void, undefined> {
  const source = Readable.from(readChunks(file));
  const parser = parse({
    delimiter,
    from,
    bom: true,
    info: true,
    trim: true,
    relax_column_count_less: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
  });
  source.on('error', (error) => parser.destroy(error));
  try {
    for await (const found of source.pipe(parser)) {
      // Sound: with `info` and without `columns`, `csv-parse` yields an array of texts and its position in the file.
      const { record, info } = found as { record: readonly string[]; info: { readonly lines: number } };
      yield { line: info.lines, cells: record };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const { code, message, lines } = error;
    if (code !== 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH')
      throw new CommandError(`${name} is not valid CSV: ${plain(message)}`);
    const advice = 'A field that holds the delimiter needs quotes';
    throw new CommandError(`Line ${lines} of ${name} has more fields than the first line. ${advice}`);
  } finally {
    source.destroy();
  }
}

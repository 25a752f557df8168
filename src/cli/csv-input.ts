import { closeSync, constants, createReadStream, fstatSync, openSync, read, type Stats } from 'node:fs';
import { Socket } from 'node:net';
import { addAbortSignal, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { CsvError, parse } from 'csv-parse';
import { CommandError, formatReason } from './terminal.ts';
import { plain } from './text.ts';

/** A pipe cannot be read twice, so its bytes are kept in memory. */
const MAX_PIPE_MIB = 64;
const CHUNK_BYTES = 65_536;

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
  close(): void;
}

interface CsvOptions {
  readonly encoding: string;
  readonly delimiter?: string | undefined;
  readonly signal: AbortSignal;
}

/** Bytes that can be read more than once. */
interface Source {
  readonly identity: Stats;
  chunks(): AsyncIterable<Buffer> | Iterable<Buffer>;
  close(): void;
}

export function isStandardInput(path: string): boolean {
  return path === '-' || path === '/dev/stdin';
}

/** Checks the whole input, so that a mistake in its last line is found before anything is sent. */
export async function readCsv(path: string, options: CsvOptions): Promise<CsvInput> {
  const { encoding, signal } = options;
  const name = isStandardInput(path) ? 'Standard input' : path;
  let source: Source | undefined;
  try {
    source = await openSource(path, name, signal);
    const { identity, chunks, close } = source;
    const decoded = () => decode(chunks(), encoding, name);
    const start = await readStart(decoded());
    const delimiter = options.delimiter ?? detectDelimiter(start);
    const rowsFrom = (line: number) => parseRows(Readable.from(decoded()), name, delimiter, line);
    let columns: readonly string[] | undefined;
    let total = -1;
    for await (const { cells } of rowsFrom(1)) {
      signal.throwIfAborted();
      columns ??= cells;
      total += 1;
    }
    if (columns === undefined)
      throw new CommandError(`Expected ${name} to have a first line of names, got an empty file`);
    const needsBom = start.startsWith('\uFEFF') || encoding !== 'utf-8';
    return { name, columns, total, delimiter, needsBom, identity, rows: () => rowsFrom(2), close };
  } catch (error) {
    source?.close();
    if (error instanceof CommandError || signal.aborted) throw error;
    throw new CommandError(`Could not read ${name}: ${formatReason(error)}`);
  }
}

async function openSource(path: string, name: string, signal: AbortSignal): Promise<Source> {
  const keep = async (stream: Readable, identity: Stats): Promise<Source> => {
    const chunks = await readPipe(addAbortSignal(signal, stream), name);
    return { identity, chunks: () => chunks, close: () => {} };
  };
  if (isStandardInput(path)) return keep(process.stdin, fstatSync(0));
  // Without O_NONBLOCK, a FIFO would block the process until somebody writes to it, and Ctrl-C would not help.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  const identity = fstatSync(fd);
  if (identity.isFile()) return { identity, chunks: () => readFile(fd), close: () => closeSync(fd) };
  if (!identity.isDirectory()) {
    return keep(identity.isFIFO() ? new Socket({ fd }) : createReadStream('', { fd }), identity);
  }
  closeSync(fd);
  throw new CommandError(`Expected ${path} to be a file, got a folder`);
}

const readAt = promisify(read);

/** Reads a file from its start and leaves it open; a stream would close it. */
async function* readFile(fd: number): AsyncGenerator<Buffer, void, undefined> {
  for (let position = 0; ; ) {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    const { bytesRead } = await readAt(fd, buffer, 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

async function readPipe(stream: AsyncIterable<Buffer>, name: string): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > MAX_PIPE_MIB * 1024 * 1024) {
      const advice = 'Store it as a file and import the file';
      throw new CommandError(`Expected ${name} to have at most ${MAX_PIPE_MIB} MiB, got more. ${advice}`);
    }
    chunks.push(chunk);
  }
  return chunks;
}

async function* decode(
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
  encoding: string,
  name: string,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder(encoding, { ignoreBOM: true });
  let lines = 1;
  const decodeChunk = (chunk?: Buffer) => {
    const text = decoder.decode(chunk, { stream: chunk !== undefined });
    // U+FFFD marks a character that this decoder, or a program that converted the file before, could not read.
    const lost = text.indexOf('\uFFFD');
    lines += (lost < 0 ? text : text.slice(0, lost)).match(/\r\n|\n|\r/g)?.length ?? 0;
    if (lost < 0) return text;
    const advice = 'If a spreadsheet wrote the file, try --encoding latin1 or utf-16le';
    throw new CommandError(
      `Expected ${name} to be ${encoding.toUpperCase()} text, got other bytes in line ${lines}. ${advice}`,
    );
  };
  for await (const chunk of source) yield decodeChunk(chunk);
  yield decodeChunk();
}

/** Reads up to the end of the first line that is not empty. A pipe may deliver it in several chunks. */
async function readStart(texts: AsyncIterable<string>): Promise<string> {
  let start = '';
  let isBlank = true;
  for await (const text of texts) {
    start += text;
    const line: string = isBlank ? text.trimStart() : text;
    if (/[\r\n]/.test(line)) break;
    isBlank &&= line === '';
  }
  return start;
}

function detectDelimiter(text: string): string {
  const line = text.split(/[\r\n]+/).find((candidate) => candidate.trim() !== '') ?? '';
  const unquoted = line.replace(/"[^"]*"/g, '');
  const count = (delimiter: string) => unquoted.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, delimiter) => (count(delimiter) > count(best) ? delimiter : best));
}

async function* parseRows(
  source: Readable,
  name: string,
  delimiter: string,
  from: number,
): AsyncGenerator<Row, void, undefined> {
  const parser = parse({
    delimiter,
    // By default, the first line break of the file would be the only one that ends a row.
    record_delimiter: ['\r\n', '\n', '\r'],
    from,
    bom: true,
    info: true,
    trim: true,
    relax_column_count_less: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
  });
  source.on('error', (error) => parser.destroy(error));
  let countedTwice = 0;
  try {
    for await (const found of source.pipe(parser)) {
      // Sound: with `info` and without `columns`, `csv-parse` yields an array of texts and its position in the file.
      const { record, info } = found as { record: readonly string[]; info: { readonly lines: number } };
      // Inside quotes, `csv-parse` counts CRLF as two lines.
      countedTwice += record.join().match(/\r\n/g)?.length ?? 0;
      yield { line: info.lines - countedTwice, cells: record };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const { code, message, lines } = error;
    if (code !== 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH')
      throw new CommandError(`${name} is not valid CSV: ${plain(message)}`);
    const advice = 'A field that holds the delimiter needs quotes';
    throw new CommandError(
      `Line ${Number(lines) - countedTwice} of ${name} has more fields than the first line. ${advice}`,
    );
  } finally {
    source.destroy();
  }
}

import { createReadStream, fstatSync, type Stats, statSync } from 'node:fs';
import { addAbortSignal, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { CommandError, formatReason } from './terminal.ts';
import { plain } from './text.ts';

/** A pipe cannot be read twice, so its bytes are kept in memory. */
const MAX_PIPE_MIB = 64;
/** Some spreadsheets name the delimiter in the first line of a CSV file. */
const SEPARATOR_LINE = /^\uFEFF?"?sep=([^"\r\n])"?[,;\t]*[\r\n]/i;

/** A row of the file. `line` is the number that an editor shows for the row's last line. */
export interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

export interface CsvInput {
  readonly name: string;
  readonly columns: readonly string[];
  readonly delimiter: string;
  /** True when the file of failures needs a byte order mark, without which spreadsheets misread UTF-8. */
  readonly needsBom: boolean;
  /** Identifies the file under all of its names. */
  readonly identity: Stats;
  /** Reads the rows below the line of column names, from the first row at each call. */
  rows(): AsyncGenerator<Row, void, undefined>;
}

/** Bytes that can be read more than once. */
interface Source {
  readonly identity: Stats;
  chunks(): AsyncIterable<Buffer> | Iterable<Buffer>;
}

export function isStandardInput(path: string): boolean {
  return path === '-' || path === '/dev/stdin';
}

/** Opens a file and reads its first line, the names of the columns. */
export async function openCsv(
  path: string,
  encoding: string,
  givenDelimiter: string | undefined,
  signal: AbortSignal,
): Promise<CsvInput> {
  const name = isStandardInput(path) ? 'Standard input' : path;
  try {
    const { identity, chunks } = await openSource(path, name, signal);
    const decoded = async function* () {
      const decoder = new TextDecoder(encoding, { ignoreBOM: true });
      for await (const chunk of chunks()) yield decoder.decode(chunk, { stream: true });
      yield decoder.decode();
    };
    let start = '';
    for await (start of decoded()) break;
    const separator = SEPARATOR_LINE.exec(start);
    const text = start.slice(separator?.[0].length);
    const delimiter = givenDelimiter ?? separator?.[1] ?? detectDelimiter(text);
    const parserOptions = { delimiter, from_line: separator === null ? 1 : 2 };
    const rows = (from: number) =>
      parseRows(Readable.from(decoded()), name, encoding, { ...parserOptions, from });
    const { value: first } = await rows(1).next();
    if (first === undefined)
      throw new CommandError(`${name} is empty; it must begin with a line that names the columns`);
    const needsBom = start.startsWith('\uFEFF') || encoding !== 'utf-8';
    return { name, columns: first.cells, delimiter, needsBom, identity, rows: () => rows(2) };
  } catch (error) {
    if (error instanceof CommandError || signal.aborted) throw error;
    throw new CommandError(`Could not read ${name}: ${formatReason(error)}`);
  }
}

async function openSource(path: string, name: string, signal: AbortSignal): Promise<Source> {
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
        `${name} has more than ${MAX_PIPE_MIB} MiB, the maximum for a pipe; save it as a file and import the file`,
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

async function* parseRows(
  source: Readable,
  name: string,
  encoding: string,
  options: { readonly delimiter: string; readonly from: number; readonly from_line: number },
): AsyncGenerator<Row, void, undefined> {
  const parser = parse({
    ...options,
    // Without this option, only the kind of line break that occurs first in the file would end a row.
    record_delimiter: ['\r\n', '\n', '\r'],
    bom: true,
    info: true,
    trim: true,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
  });
  source.on('error', (error) => parser.destroy(error));
  let countedTwice = 0;
  try {
    for await (const found of source.pipe(parser)) {
      // Safe cast: with `info` and without `columns`, `csv-parse` yields an array of texts and the position in the file.
      const { record, info } = found as { record: readonly string[]; info: { readonly lines: number } };
      // Inside quotes, `csv-parse` counts CRLF as two lines.
      countedTwice += record.join().match(/\r\n/g)?.length ?? 0;
      const line = info.lines - countedTwice;
      // Decoders write U+FFFD for bytes that they cannot read: the decoder above, or a program that converted the file before.
      if (record.join().includes('\uFFFD'))
        throw new CommandError(
          `Line ${line} of ${name} is not ${encoding.toUpperCase()} text; ` +
            'if a spreadsheet wrote the file, try --encoding latin1 or utf-16le',
        );
      yield { line, cells: record };
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      error instanceof CsvError
        ? `${name} is not valid CSV: ${plain(error.message)}. If a field contains a quote, double it, and put the field in quotes, as in "a ""b"" c"`
        : `Could not read ${name}: ${formatReason(error)}`,
    );
  } finally {
    source.destroy();
  }
}

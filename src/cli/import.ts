import { once } from 'node:events';
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import cliProgress from 'cli-progress';
import { CsvError, parse } from 'csv-parse';
import { type Stringifier, stringify } from 'csv-stringify';
import {
  type BulkOutcome,
  type BulkSummary,
  type TrackerInput,
  type TrackingClient,
  trackerInputSchema,
} from 'tracking-client';
import { CommandError, EXIT, plain, print, printJson, type Terminal, warn } from './terminal.ts';

export interface ImportOptions {
  /** Where the rows go that are no trackers. Default: beside the file, as `NAME.failures.csv`. */
  readonly failures?: string | undefined;
  readonly json: boolean;
  readonly terminal: Terminal;
}

type Cells = Readonly<Record<string, string>>;

/** A row of the file; its line as an editor counts, the last one of a row of several. */
interface Row {
  readonly line: number;
  readonly cells: Cells;
}

/** The columns that mean something; those of a recipient and the couriers need more than their text. */
const FIELDS = [
  ...Object.keys(trackerInputSchema.shape).filter((name) => !['recipient', 'settings'].includes(name)),
  'recipientEmail',
  'recipientName',
];

/** `tracking_number`, `Tracking Number` and `trackingNumber` are one name. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '');
}

/** Creates a tracker for each row of a CSV file; rows that fail go into a file of their own, with the reason. */
export async function importFile(
  client: TrackingClient,
  path: string,
  { failures = failuresPathOf(path), json, terminal }: ImportOptions,
): Promise<number> {
  if (resolve(failures) === resolve(path))
    throw new CommandError('Expected `--failures` to be another file than the one to import');
  const { total, columns } = await look(path);
  const fields = fieldsOf(columns);
  if (!Object.values(fields).includes('trackingNumber')) {
    const got = columns.map((name) => plain(name)).join(', ');
    throw new CommandError(`Expected ${path} to have a column trackingNumber in its first line, got ${got}`);
  }
  const ignored = columns.filter((name) => !(name in fields)).map((name) => plain(name));
  if (ignored.length > 0) warn(terminal, `Columns that mean nothing here: ${ignored.join(', ')}`);
  const bar = progressBar(terminal);
  bar?.start(total, 0, { created: 0 });
  const rows = new Map<number, Row>();
  const file = new FailuresFile(failures, columns);
  const run = client.trackers.createMany(inputsOf(path, fields, rows), {
    signal: terminal.signal,
    onProgress: ({ total: done, created }) => bar?.update(done, { created }),
  });
  try {
    for await (const outcome of run) {
      const row = rows.get(outcome.index);
      rows.delete(outcome.index);
      if (json) printJson(terminal, jsonOf(outcome, row?.line));
      if (outcome.status !== 'created' && outcome.status !== 'existing') await file.add(outcome, row);
    }
  } finally {
    bar?.stop();
    await file.close();
    report(run.summary(), total, file, { json, terminal });
  }
  return file.count > 0 ? EXIT.failed : EXIT.done;
}

function failuresPathOf(path: string): string {
  return join(dirname(path), `${basename(path, extname(path))}.failures.csv`);
}

const CSV = { bom: true, skip_empty_lines: true, trim: true, relax_column_count: true } as const;

/** Reads the file once from end to end: a mistake in its last line is found before anything is sent. */
async function look(path: string): Promise<{ total: number; columns: readonly string[] }> {
  let columns: readonly string[] | undefined;
  let total = 0;
  for await (const record of records(path, CSV)) {
    // Without the option `columns`, a record is an array of texts.
    if (columns === undefined) columns = record as string[];
    else total += 1;
  }
  if (columns === undefined)
    throw new CommandError(`Expected ${path} to have a first line of names, got an empty file`);
  return { total, columns };
}

async function* records(path: string, options: object): AsyncGenerator<unknown, void, undefined> {
  const source = createReadStream(path);
  const parser = parse(options);
  source.on('error', (error) => parser.destroy(error));
  try {
    yield* source.pipe(parser);
  } catch (error) {
    if (error instanceof CsvError) throw new CommandError(`${path} is no CSV: ${plain(error.message)}`);
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') throw new CommandError(`There is no file ${path}`);
    if (code === 'EISDIR') throw new CommandError(`Expected ${path} to be a file, got a folder`);
    throw error;
  } finally {
    source.destroy();
  }
}

/** What each column of the file is in a creation request; others are left out. */
function fieldsOf(columns: readonly string[]): Readonly<Record<string, string>> {
  const known = new Map(FIELDS.map((name) => [bare(name), name]));
  return Object.fromEntries(
    columns.flatMap((name) => {
      const field = known.get(bare(name));
      return field === undefined ? [] : [[name, field]];
    }),
  );
}

async function* inputsOf(
  path: string,
  fields: Readonly<Record<string, string>>,
  rows: Map<number, Row>,
): AsyncGenerator<TrackerInput, void, undefined> {
  let index = 0;
  for await (const found of records(path, { ...CSV, columns: true, info: true })) {
    // With `columns` a record is an object of texts, and with `info` it comes with its place in the file.
    const { record, info } = found as { readonly record: Cells; readonly info: { readonly lines: number } };
    rows.set(index, { line: info.lines, cells: record });
    index += 1;
    yield toInput(record, fields);
  }
}

/** An empty cell is a field that is left out. */
function toInput(cells: Cells, fields: Readonly<Record<string, string>>): TrackerInput {
  const given = Object.entries(fields).flatMap(([column, field]) => {
    const text = cells[column] ?? '';
    return text === '' ? [] : [[field, text] as const];
  });
  const {
    trackingNumber = '',
    courierCode,
    recipientEmail,
    recipientName,
    ...texts
  } = Object.fromEntries(given);
  const recipient = {
    ...(recipientEmail !== undefined && { email: recipientEmail }),
    ...(recipientName !== undefined && { name: recipientName }),
  };
  return {
    ...texts,
    trackingNumber,
    ...(courierCode !== undefined && { courierCode: courierCode.split(/[\s;|]+/) }),
    ...(Object.keys(recipient).length > 0 && { recipient }),
  };
}

function formatError({ errors = [] }: BulkOutcome): string {
  return errors.map(({ code, message }) => (message ? `${code}: ${message}` : code)).join('; ');
}

function jsonOf({ input, status, tracker, errors }: BulkOutcome, line: number | undefined) {
  const { trackingNumber } = input;
  return {
    line,
    status,
    trackingNumber,
    trackerId: tracker?.trackerId ?? null,
    errors: errors ?? [],
  };
}

function progressBar({ stderr }: Terminal): cliProgress.SingleBar | undefined {
  if (!stderr.isTTY) return undefined;
  const format = '{bar} {percentage}% · {value} of {total} rows, {created} created';
  return new cliProgress.SingleBar(
    { format, stream: stderr, clearOnComplete: true },
    cliProgress.Presets.shades_classic,
  );
}

/** The rows that failed, as they were, and why; the file is written when there is one. */
class FailuresFile {
  readonly path: string;
  readonly #columns: readonly string[];
  #writer: { readonly csv: Stringifier; readonly file: WriteStream } | undefined;
  count = 0;

  constructor(path: string, columns: readonly string[]) {
    this.path = path;
    this.#columns = columns;
  }

  async add(outcome: BulkOutcome, row: Row | undefined): Promise<void> {
    this.count += 1;
    this.#writer ??= this.#open();
    const { csv } = this.#writer;
    const record = { ...row?.cells, line: row?.line, status: outcome.status, reason: formatError(outcome) };
    if (!csv.write(record)) await once(csv, 'drain');
  }

  /** One of an earlier import would be taken for this one's. */
  async close(): Promise<void> {
    if (this.#writer === undefined) return rm(this.path, { force: true });
    this.#writer.csv.end();
    await finished(this.#writer.file);
  }

  #open() {
    const names = ['line', 'status', 'reason'];
    const own = this.#columns.filter((name) => !names.includes(name));
    const csv = stringify({ header: true, columns: [...own, ...names] });
    return { csv, file: csv.pipe(createWriteStream(this.path)) };
  }
}

const MEANINGS: readonly (readonly [Exclude<keyof BulkSummary, 'total'>, string])[] = [
  ['created', 'new trackers'],
  ['existing', 'the same payload existed already'],
  ['invalid', 'broke a rule, never sent'],
  ['error', 'refused by the service, or not sent'],
  ['unknown', 'sent, and the response was lost: safe to import again'],
];

function report(
  summary: BulkSummary,
  total: number,
  file: FailuresFile,
  { json, terminal }: Pick<ImportOptions, 'json' | 'terminal'>,
): void {
  const { colours } = terminal;
  // What is read by a program goes to stdout alone.
  const say = (line: string) => (json ? terminal.stderr.write(`${line}\n`) : print(terminal, line));
  say(colours.bold(`${summary.total} of ${total} rows`));
  for (const [status, meaning] of MEANINGS) {
    const paint = ['created', 'existing'].includes(status) ? colours.green : colours.yellow;
    if (summary[status] > 0)
      say(`  ${paint(status.padEnd(9))}${String(summary[status]).padStart(6)}  ${colours.dim(meaning)}`);
  }
  if (summary.total < total) say(`Rows after the first ${summary.total} were not read.`);
  if (file.count > 0) say(`Why, row by row: ${file.path}`);
}

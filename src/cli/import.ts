import { basename, dirname, extname, join } from 'node:path';
import cliProgress from 'cli-progress';
import type { Command } from 'commander';
import {
  type BulkSummary,
  type TrackerInput,
  type TrackingClient,
  trackerInputSchema,
} from 'tracking-client';
import {
  type CsvInput,
  type FailuresFile,
  isStandardInput,
  openCsv,
  openFailures,
  type Row,
  removeFailureColumns,
} from './csv.ts';
import { addServiceFlags, createClient, rejectFlag, type ServiceFlags } from './flags.ts';
import { CommandError, EXIT, formatReason, OutputError, plain, type Terminal } from './terminal.ts';

interface ImportFlags extends ServiceFlags {
  readonly failures?: string;
  readonly overwrite?: boolean;
  readonly delimiter?: string;
  readonly encoding?: string;
}

const FIELDS: readonly string[] = [
  ...Object.keys(trackerInputSchema.shape).filter((name) => !['recipient', 'settings'].includes(name)),
  'recipientEmail',
  'recipientName',
];
const FIELD_BY_NAME = new Map(FIELDS.map((name) => [normalizeName(name), name]));
const MAX_NAMES_LENGTH = 200;
const MAX_REASONS = 5;
const MAX_FAULTS = 10;

const MEANINGS: readonly (readonly [Exclude<keyof BulkSummary, 'total'>, string])[] = [
  ['created', 'new trackers'],
  ['existing', 'a tracker existed already'],
  ['invalid', 'not sent, because a field breaks a rule'],
  ['error', 'no tracker was created; see Reasons'],
  ['unknown', 'perhaps created; import these rows again, which is safe'],
];

export function addImport(program: Command, terminal: Terminal): void {
  const command = program
    .command('import <file>')
    .summary('Create a tracker for each row of a CSV file (billed)')
    .description(
      'Create a tracker (billed) for each row of a CSV file. To read standard input,\ngive "-" as the file.',
    )
    .option('--failures <file>', 'file for failed rows (default: next to the CSV file)')
    .option('--overwrite', 'replace the file of --failures if it exists')
    .option('--delimiter <char>', 'character between fields, or "tab" (default: detected)', parseDelimiter)
    .option('--encoding <name>', 'encoding of the file, such as latin1 (default: utf-8)', parseEncoding)
    .addHelpText(
      'after',
      `
The first line names the columns. Only trackingNumber is required. Columns:
${FIELDS.join(', ').replace(/(.{1,78}) /g, '$1\n')}.
Case, spaces, "-" and "_" in names do not matter. Other columns are not sent.`,
    );
  addServiceFlags(command).action(async (path: string, flags: ImportFlags) => {
    const client = createClient(flags, terminal);
    const { encoding = 'utf-8', delimiter } = flags;
    const input = await openCsv(path, encoding, delimiter, terminal.signal);
    terminal.exitCode = await importRows(client, input, path, flags, terminal);
  });
}

function parseDelimiter(text: string): string {
  const delimiter = text === 'tab' ? '\t' : text;
  if (delimiter.length === 1 && !/["\r\n]/.test(delimiter)) return delimiter;
  return rejectFlag('delimiter', 'one character, or tab', text);
}

function parseEncoding(text: string): string {
  try {
    return new TextDecoder(text).encoding;
  } catch {
    return rejectFlag('encoding', 'an encoding such as utf-8, latin1 or utf-16le', text);
  }
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '');
}

type Fields = readonly (string | undefined)[];

function resolveFields(columns: readonly string[], fileName: string): Fields {
  const fields = columns.map((name) => FIELD_BY_NAME.get(normalizeName(name)));
  if (!fields.includes('trackingNumber')) {
    const index = columns.findIndex((name) => normalizeName(name) === 'number');
    if (index < 0) {
      const found = plain(columns.join(', ')).slice(0, MAX_NAMES_LENGTH);
      throw new CommandError(
        `${fileName} has no column trackingNumber; add it to the first line, which is now: ${found}`,
      );
    }
    fields[index] = 'trackingNumber';
  }
  const names = columns.map((name, index) => fields[index] ?? name);
  const twice = names.find((name, index) => name !== '' && names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new CommandError(
      `${fileName} has the column ${plain(twice).slice(0, MAX_NAMES_LENGTH)} twice; remove or rename one`,
    );
  return fields;
}

/** Checks the whole input, so that a fault in its last line is found before anything is sent; returns the number of rows. */
async function checkRows(input: CsvInput, fields: Fields, signal: AbortSignal): Promise<number> {
  const faults: string[] = [];
  let total = 0;
  for await (const { line, cells } of input.rows()) {
    signal.throwIfAborted();
    total += 1;
    faults.push(...findFaults(cells, fields, input.columns.length).map((fault) => `line ${line}: ${fault}`));
    if (faults.length > MAX_FAULTS) break;
  }
  if (faults.length === 0) return total;
  const more = faults.length > MAX_FAULTS ? ['and more after these'] : [];
  const head = `${input.name} cannot be imported; nothing was sent. Correct these lines:`;
  throw new CommandError([head, ...faults.slice(0, MAX_FAULTS), ...more].join('\n'));
}

/** Finds the faults that an unquoted delimiter or a spreadsheet leaves in a row. */
function findFaults(cells: readonly string[], fields: Fields, columns: number): string[] {
  const faults: string[] = [];
  if (cells.length > columns)
    faults.push(
      `${cells.length} fields, but the first line names ${columns} columns; put quotes around a field that contains the delimiter`,
    );
  const { trackingNumber = '', shippingDate = '' } = nameCells(cells, fields);
  if (/^\d([.,]\d+)?E\+\d+$/i.test(trackingNumber))
    faults.push(
      `the spreadsheet has shortened the tracking number to ${trackingNumber}; format its column as text, then enter the number again`,
    );
  const [date] = /^(?!\d{4}-)\d{1,4}[./-]\d{1,2}[./-]\d{1,4}/.exec(shippingDate) ?? [];
  if (date !== undefined) faults.push(`the date ${date} must have the form YYYY-MM-DD, as in 2026-11-15`);
  return faults;
}

function nameCells(cells: readonly string[], fields: Fields): Readonly<Record<string, string>> {
  const named = fields.flatMap((field, index) => {
    const text = cells[index] ?? '';
    return field === undefined || text === '' ? [] : [[field, text] as const];
  });
  return Object.fromEntries(named);
}

function buildRowInput(cells: readonly string[], fields: Fields): TrackerInput {
  const {
    trackingNumber = '',
    courierCode,
    recipientEmail: email,
    recipientName: name,
    ...texts
  } = nameCells(cells, fields);
  const recipient = email === undefined && name === undefined ? undefined : { email, name };
  return { ...texts, trackingNumber, courierCode: courierCode?.split(/[\s;|]+/).filter(Boolean), recipient };
}

function defaultFailuresPath(path: string, { identity }: CsvInput): string {
  const now = new Date();
  // The Swedish locale formats local time as in ISO 8601. Milliseconds make the path unique for each run.
  const time = now.toLocaleString('sv').replace(/[-:]/g, '').replace(' ', '-');
  const milliseconds = String(now.getMilliseconds()).padStart(3, '0');
  const isNamed = identity.isFile() && !isStandardInput(path);
  const stem = isNamed ? join(dirname(path), basename(path, extname(path))) : 'import';
  return `${stem}.failures-${time}-${milliseconds}.csv`;
}

async function importRows(
  client: TrackingClient,
  input: CsvInput,
  path: string,
  { failures: failuresPath = defaultFailuresPath(path, input), overwrite = false, json }: ImportFlags,
  terminal: Terminal,
): Promise<number> {
  const { signal, stderr } = terminal;
  const columns = removeFailureColumns(input.columns);
  const fields = resolveFields(columns, input.name);
  const total = await checkRows(input, fields, signal);
  const unsent = columns.filter((column, index) => column !== '' && fields[index] === undefined);
  if (unsent.length > 0) terminal.warn(`Columns that are not sent: ${plain(unsent.join(', '))}`);
  const failures = await openFailures(failuresPath, input, overwrite);
  const rows = new Map<number, Row>();
  const inputs = async function* () {
    let index = 0;
    for await (const row of input.rows()) {
      rows.set(index, row);
      index += 1;
      yield buildRowInput(row.cells, fields);
    }
  };
  // The bar prints nothing if `stderr` is not a terminal.
  const format = '{bar} {percentage}% · {value} of {total} rows, {created} created';
  const options = { format, stream: stderr, clearOnComplete: true };
  const bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
  bar.start(total, 0, { created: 0 });
  const run = client.trackers.createMany(inputs(), {
    signal,
    onProgress: ({ total: done, created }) => bar.update(done, { created }),
  });
  let stop: string | undefined;
  const stopAtFile = (error: unknown, line: number) => {
    stop ??= `Stopped at line ${line} of ${input.name}: could not write ${failures.path}: ${formatReason(error)}`;
  };
  let line = 1;
  try {
    for await (const outcome of run) {
      const row = rows.get(outcome.index) ?? { line, cells: [] };
      rows.delete(outcome.index);
      line = row.line;
      const { status, errors = [] } = outcome;
      const { trackingNumber } = outcome.input;
      const trackerId = outcome.tracker?.trackerId ?? null;
      if (json) terminal.printJson({ line, status, trackingNumber, trackerId, errors });
      if (status === 'created' || status === 'existing') continue;
      await failures.add(outcome, row).catch((error: unknown) => stopAtFile(error, line));
      if (stop !== undefined) break;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    stop = 'Stopped';
  } finally {
    bar.stop();
    await failures.close().catch((error: unknown) => stopAtFile(error, line));
  }
  // With `--json` a program reads stdout, so sentences for people go to stderr.
  const printLine = (text: string) => (json ? stderr.write(`${text}\n`) : terminal.print(text));
  for (const text of formatSummary(run.summary(), total, failures, terminal)) printLine(text);
  if (stop === undefined) return failures.count() > 0 ? EXIT.failed : EXIT.done;
  const advice = 'Run the same command again to continue; existing trackers are not created twice.';
  terminal.warn(`${stop}. ${advice}`);
  return signal.aborted && !(signal.reason instanceof OutputError) ? EXIT.interrupted : EXIT.failed;
}

function formatSummary(
  summary: BulkSummary,
  total: number,
  failures: FailuresFile,
  { colours }: Terminal,
): string[] {
  const count = (value: number) => String(value).padStart(6);
  const lines = [colours.bold(`${summary.total} of ${total} rows`)];
  for (const [status, meaning] of MEANINGS) {
    const paint = ['created', 'existing'].includes(status) ? colours.green : colours.yellow;
    if (summary[status] > 0)
      lines.push(`  ${paint(status.padEnd(9))}${count(summary[status])}  ${colours.dim(meaning)}`);
  }
  const reasons = [...failures.reasons.values()].sort((a, b) => b.count - a.count);
  if (reasons.length > 0) lines.push(colours.bold('Reasons'));
  for (const { text, line, count: times } of reasons.slice(0, MAX_REASONS))
    lines.push(`  ${count(times)}  ${text} ${colours.dim(`(first in line ${line})`)}`);
  const others = reasons.length - MAX_REASONS;
  if (others > 0) lines.push(`  and ${others} other reason${others === 1 ? '' : 's'}`);
  if (failures.count() > 0) {
    const onlyUnknown = summary.invalid + summary.error === 0;
    const what = onlyUnknown ? 'Rows to import again' : 'Failed rows (fix the causes, then import this file)';
    lines.push(`${what}: ${failures.path}`);
  }
  return lines;
}

import { createHash } from 'node:crypto';
import { basename, dirname, extname, join } from 'node:path';
import cliProgress from 'cli-progress';
import type { Command } from 'commander';
import type { BulkSummary, CourierProblem, TrackerInput, TrackingClient } from 'tracking-client';
import {
  type CsvInput,
  type FailuresFile,
  isStandardInput,
  openCsv,
  openFailures,
  type Row,
  removeFailureColumns,
} from './csv.ts';
import { addHelpLines, addServiceFlags, createClient, rejectFlag, type ServiceFlags } from './flags.ts';
import { wrap } from './layout.ts';
import { buildInput, FIELDS, findFaults, type Layout, readLayout } from './rows.ts';
import { CommandError, EXIT, formatReason, OutputError, plain, type Terminal } from './terminal.ts';

interface ImportFlags extends ServiceFlags {
  readonly failures?: string;
  readonly overwrite?: boolean;
  readonly delimiter?: string;
  readonly encoding?: string;
  readonly quotes: boolean;
  readonly asIs?: boolean;
}

const MAX_REASONS = 5;
const MAX_FAULTS = 10;
const MAX_PROBLEMS = 10;
const MAX_LINES_SHOWN = 3;

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
    .description('Create a tracker (billed) for each row of a CSV file; "-" is standard input.')
    .option('--failures <file>', 'file for failed rows (default: next to the CSV file)')
    .option('--overwrite', 'replace the file of --failures if it exists')
    .option('--delimiter <char>', 'character between fields, or "tab" (default: detected)', parseDelimiter)
    .option('--encoding <name>', 'encoding of the file, such as latin1 (default: utf-8)', parseEncoding)
    .option('--no-quotes', 'read quotes as ordinary characters')
    .option('--as-is', 'send ids even if they look changed by a spreadsheet');
  addHelpLines(
    command,
    terminal,
    `The first line names the columns. Only trackingNumber is required. Columns: ${FIELDS.join(', ')}.`,
    'Case, spaces, "-" and "_" in names do not matter. Other columns are not sent.',
  );
  addServiceFlags(command).action(async (path: string, flags: ImportFlags) => {
    const client = createClient(flags, terminal);
    const { encoding = 'utf-8', delimiter, quotes: hasQuotes } = flags;
    const input = await openCsv(path, { encoding, delimiter, hasQuotes }, terminal.signal);
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

/**
 * Checks the whole input, so that a fault in its last line is found before anything is sent.
 *
 * @returns a digest of each row, which shows whether the row has changed when it is read again
 */
async function checkRows(input: CsvInput, layout: Layout, isAsIs: boolean, signal: AbortSignal) {
  const faults: string[] = [];
  const digests: string[] = [];
  let hasDoubts = false;
  for await (const row of input.rows()) {
    signal.throwIfAborted();
    digests.push(buildDigest(row));
    for (const { text, isDoubt = false } of findFaults(row.cells, layout, input.columns.length)) {
      if (isDoubt && isAsIs) continue;
      hasDoubts ||= isDoubt;
      faults.push(`line ${row.line}: ${text}`);
    }
    if (faults.length > MAX_FAULTS) break;
  }
  if (faults.length === 0) return digests;
  const head = `${input.name} cannot be imported; nothing was sent. Correct these lines:`;
  const more = faults.length > MAX_FAULTS ? ['and more lines after these'] : [];
  const accept = hasDoubts ? ['If all these ids are right as they are, pass --as-is.'] : [];
  throw new CommandError([head, ...faults.slice(0, MAX_FAULTS), ...more, ...accept].join('\n'));
}

function buildDigest({ cells }: Row): string {
  return createHash('sha256').update(JSON.stringify(cells)).digest('base64');
}

function defaultFailuresPath(path: string, { identity }: CsvInput): string {
  const now = Date.now();
  const localTime = now - new Date(now).getTimezoneOffset() * 60_000;
  // If Node has only English, `toLocaleString` writes slashes, which a file name cannot contain. The milliseconds make the path
  // unique for each run.
  const [date, time, milliseconds] = new Date(localTime).toISOString().replace(/[-:Z]/g, '').split(/[T.]/);
  const isNamed = identity.isFile() && !isStandardInput(path);
  const stem = isNamed ? join(dirname(path), basename(path, extname(path))) : 'import';
  return `${stem}.failures-${date}-${time}-${milliseconds}.csv`;
}

/** How many rows have a problem with their courier, and the first lines of these rows. */
interface ProblemCount {
  count: number;
  readonly lines: number[];
}

/** Checks the couriers of rows. The rows are sent all the same, also if the list of couriers cannot be read. */
function createCourierCheck(
  { couriers }: TrackingClient,
  terminal: Terminal,
  onProblem: (problem: CourierProblem, line: number) => void,
) {
  const counts = new Map<string, ProblemCount>();
  let hasFailed = false;
  const check = async (input: TrackerInput, line: number): Promise<void> => {
    if (hasFailed) return;
    try {
      for (const problem of await couriers.check(input, { signal: terminal.signal })) {
        onProblem(problem, line);
        const known = counts.get(problem.message) ?? { count: 0, lines: [] };
        counts.set(problem.message, known);
        known.count += 1;
        if (known.lines.length < MAX_LINES_SHOWN) known.lines.push(line);
      }
    } catch (error) {
      hasFailed = true;
      if (!terminal.signal.aborted) terminal.warn(`The couriers are not checked: ${formatReason(error)}`);
    }
  };
  return { check, counts };
}

function formatProblems(
  counts: ReadonlyMap<string, ProblemCount>,
  { colours, width }: Pick<Terminal, 'colours' | 'width'>,
): string[] {
  if (counts.size === 0) return [];
  // A file can have as many unknown codes as rows.
  const mostFirst = [...counts].sort(([, a], [, b]) => b.count - a.count);
  const lines = mostFirst.slice(0, MAX_PROBLEMS).map(([message, { count, lines }]) => {
    const where = `(${count === 1 ? 'line' : 'lines'} ${lines.join(', ')}${count > lines.length ? ', …' : ''})`;
    return wrap(`  ${String(count).padStart(6)}  `, `${plain(message)} ${colours.dim(where)}`, width);
  });
  const others = counts.size - MAX_PROBLEMS;
  if (others > 0) lines.push(`  and ${others} other problem${others === 1 ? '' : 's'}`);
  return [colours.bold('Couriers'), ...lines];
}

async function importRows(
  client: TrackingClient,
  input: CsvInput,
  path: string,
  { failures: givenPath, overwrite = false, asIs = false, json }: ImportFlags,
  terminal: Terminal,
): Promise<number> {
  const { signal, stderr } = terminal;
  const layout = readLayout(removeFailureColumns(input.columns), input.name);
  const digests = await checkRows(input, layout, asIs, signal);
  const { columns, fields } = layout;
  const unsent = columns.filter((column, index) => column !== '' && fields[index] === undefined);
  if (unsent.length > 0) terminal.warn(`Columns that are not sent: ${plain(unsent.join(', '))}`);
  const failures = await openFailures(givenPath ?? defaultFailuresPath(path, input), input, overwrite);
  if (!failures.isPrivate)
    terminal.warn(
      `Other users may be able to read ${failures.path}, because its permissions cannot be changed`,
    );
  /** The rows that were read and have no outcome yet. */
  const rows: Row[] = [];
  let change: string | undefined;
  const couriers = createCourierCheck(client, terminal, (problem, line) => {
    if (json) terminal.printJson({ line, ...problem });
  });
  const inputs = async function* () {
    let count = 0;
    let lastLine = 1;
    const noteChange = () => {
      change = `Stopped after line ${lastLine}: ${input.name} has changed since it was checked`;
    };
    try {
      for await (const row of input.rows()) {
        if (buildDigest(row) !== digests[count]) return noteChange();
        count += 1;
        lastLine = row.line;
        rows.push(row);
        const input = buildInput(row.cells, layout);
        await couriers.check(input, row.line);
        yield input;
      }
      if (count < digests.length) noteChange();
    } catch (error) {
      // The check read the same rows without an error, so the file has changed.
      if (!(error instanceof CommandError)) throw error;
      noteChange();
    }
  };
  // The bar prints nothing if `stderr` is not a terminal.
  const format = '{bar} {percentage}% · {value} of {total} rows, {created} created';
  const options = { format, stream: stderr, clearOnComplete: true };
  const bar = new cliProgress.SingleBar(options, cliProgress.Presets.shades_classic);
  bar.start(digests.length, 0, { created: 0 });
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
      // Outcomes come in the order of the rows.
      const row = rows.shift() ?? { line, cells: [] };
      line = row.line;
      const { status, errors = [] } = outcome;
      const { trackingNumber } = outcome.input;
      const trackerId = outcome.tracker?.trackerId ?? null;
      if (json) terminal.printJson({ line, status, trackingNumber, trackerId, errors });
      if (status === 'created' || status === 'existing') continue;
      await failures.add(outcome, row).catch((error: unknown) => stopAtFile(error, line));
      if (stop !== undefined) break;
    }
    stop ??= change;
  } catch (error) {
    if (!signal.aborted) throw error;
    stop = 'Stopped';
  } finally {
    bar.stop();
    await failures.close().catch((error: unknown) => stopAtFile(error, line));
  }
  // With `--json` a program reads stdout, so sentences for people go to stderr.
  const { errorColours, errorWidth } = terminal;
  const printLine = (text: string) => (json ? stderr.write(`${text}\n`) : terminal.print(text));
  const screen = json ? { colours: errorColours, width: errorWidth } : terminal;
  const isDone = stop === undefined;
  for (const text of formatSummary(run.summary(), digests.length, failures, isDone, screen)) printLine(text);
  for (const text of formatProblems(couriers.counts, screen)) printLine(text);
  if (isDone) return failures.count() > 0 ? EXIT.failed : EXIT.done;
  // The file that the user named for failed rows exists now.
  const isInTheWay = givenPath !== undefined && !overwrite && failures.count() > 0;
  const command = `Run the same command again${isInTheWay ? ' with --overwrite' : ''} to continue`;
  terminal.warn(`${stop}. ${command}; no tracker is created twice.`);
  return signal.aborted && !(signal.reason instanceof OutputError) ? EXIT.interrupted : EXIT.failed;
}

function formatSummary(
  summary: BulkSummary,
  total: number,
  failures: FailuresFile,
  isDone: boolean,
  { colours, width }: Pick<Terminal, 'colours' | 'width'>,
): string[] {
  const count = (value: number) => String(value).padStart(6);
  const lines = [colours.bold(`${summary.total} of ${total} rows`)];
  for (const [status, meaning] of MEANINGS) {
    const paint = ['created', 'existing'].includes(status) ? colours.green : colours.yellow;
    if (summary[status] > 0)
      lines.push(
        wrap(`  ${paint(status.padEnd(9))}${count(summary[status])}  `, colours.dim(meaning), width),
      );
  }
  const reasons = [...failures.reasons.values()].sort((a, b) => b.count - a.count);
  if (reasons.length > 0) lines.push(colours.bold('Reasons'));
  for (const { text, line, count: times } of reasons.slice(0, MAX_REASONS))
    lines.push(wrap(`  ${count(times)}  `, `${text} ${colours.dim(`(first in line ${line})`)}`, width));
  const others = reasons.length - MAX_REASONS;
  if (others > 0) lines.push(`  and ${others} other reason${others === 1 ? '' : 's'}`);
  if (failures.count() > 0) {
    const onlyUnknown = summary.invalid + summary.error === 0;
    const what = onlyUnknown ? 'Rows to import again' : 'Failed rows (fix the causes, then import this file)';
    // To continue a stopped run, the user imports the same file again, not the file of failed rows.
    lines.push(wrap('', `${isDone ? what : 'Failed rows so far'}: ${failures.path}`, width));
  }
  return lines;
}

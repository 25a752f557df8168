import { basename, dirname, extname, join } from 'node:path';
import cliProgress from 'cli-progress';
import type { BulkOutcome, BulkSummary, TrackingClient } from 'tracking-client';
import { buildInput, ownColumns, resolveFields } from './columns.ts';
import { type CsvInput, isStandardInput, type Row, readCsv } from './csv-input.ts';
import { FailuresFile } from './failures-file.ts';
import { EXIT, formatReason, OutputError, print, printJson, type Terminal, warn } from './terminal.ts';
import { plain } from './text.ts';

export interface ImportOptions {
  /** Where the rows go that are no trackers. Default: beside the file, with the time of the run in its name. */
  readonly failures?: string | undefined;
  /** True to replace a file of failures that exists. */
  readonly overwrite?: boolean | undefined;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly json?: boolean | undefined;
  readonly terminal: Terminal;
}

/** Creates a tracker for each row of a CSV file; rows that fail go into a file of their own, with the reason. */
export async function importFile(
  client: TrackingClient,
  path: string,
  options: ImportOptions,
): Promise<number> {
  const { encoding = 'utf-8', delimiter, terminal } = options;
  const input = await readCsv(path, { encoding, delimiter, signal: terminal.signal });
  try {
    const columns = ownColumns(input.columns);
    const fields = resolveFields(columns, input.name);
    const unsent = columns.filter((column, index) => column !== '' && fields[index] === undefined);
    if (unsent.length > 0) warn(terminal, `Columns that are not sent: ${plain(unsent.join(', '))}`);
    const failuresPath = options.failures ?? defaultFailuresPath(path, input);
    const failures = await FailuresFile.open(failuresPath, input, options.overwrite ?? false);
    return await importRows(client, input, fields, failures, options);
  } finally {
    await input.close();
  }
}

/** Beside a file, or in the current folder for a pipe. */
function defaultFailuresPath(path: string, { identity }: CsvInput): string {
  // Swedish dates are ISO 8601, in local time.
  const now = new Date();
  const digits = now.toLocaleString('sv').replace(/\D/g, '');
  // A run that is stopped and started again at once must not meet its own file.
  const milliseconds = String(now.getMilliseconds()).padStart(3, '0');
  const isNamed = identity.isFile() && !isStandardInput(path);
  const stem = isNamed ? join(dirname(path), basename(path, extname(path))) : 'import';
  return `${stem}.failures-${digits.slice(0, 8)}-${digits.slice(8)}-${milliseconds}.csv`;
}

/** Sends the rows of one file, and tells what became of them. */
async function importRows(
  client: TrackingClient,
  input: CsvInput,
  fields: readonly (string | undefined)[],
  failures: FailuresFile,
  { json, terminal }: ImportOptions,
): Promise<number> {
  const { signal } = terminal;
  /** Rows whose outcome is not known yet, by their place in the file. */
  const rows = new Map<number, Row>();
  const inputs = async function* () {
    let index = 0;
    for await (const row of input.rows()) {
      rows.set(index, row);
      index += 1;
      yield buildInput(row.cells, fields);
    }
  };
  const bar = progressBar(terminal);
  bar?.start(input.total, 0, { created: 0 });
  const run = client.trackers.createMany(inputs(), {
    signal,
    onProgress: ({ total: done, created }) => bar?.update(done, { created }),
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
      if (json) printJson(terminal, describeOutcome(outcome, line));
      if (outcome.status === 'created' || outcome.status === 'existing') continue;
      await failures.add(outcome, row).catch((error: unknown) => stopAtFile(error, line));
      if (stop !== undefined) break;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    stop = 'Stopped';
  } finally {
    bar?.stop();
    await failures.close().catch((error: unknown) => stopAtFile(error, line));
  }
  // With `--json` a program reads stdout, so sentences for people go to stderr.
  const say = (text: string) => (json ? terminal.stderr.write(`${text}\n`) : print(terminal, text));
  for (const text of summaryLines(run.summary(), input.total, failures, terminal)) say(text);
  if (stop === undefined) return failures.count > 0 ? EXIT.failed : EXIT.done;
  const advice = 'Run the same command again to go on: what exists is found again, not created twice.';
  warn(terminal, `${stop}. ${advice}`);
  return signal.aborted && !(signal.reason instanceof OutputError) ? EXIT.interrupted : EXIT.failed;
}

function summaryLines(
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
  if (reasons.length > 0) lines.push(colours.bold('Why'));
  for (const { text, line, count: times } of reasons.slice(0, MAX_REASONS))
    lines.push(`  ${count(times)}  ${text} ${colours.dim(`(first in line ${line})`)}`);
  if (reasons.length > MAX_REASONS) lines.push(`  and ${reasons.length - MAX_REASONS} other reasons`);
  if (failures.count > 0) lines.push(`Row by row: ${failures.path}`);
  return lines;
}

/** The reasons that the summary shows. */
const MAX_REASONS = 5;

const MEANINGS: readonly (readonly [Exclude<keyof BulkSummary, 'total'>, string])[] = [
  ['created', 'new trackers'],
  ['existing', 'the same payload existed already'],
  ['invalid', 'broke a rule, never sent'],
  ['error', 'refused by the service, or not sent'],
  ['unknown', 'sent, and the response was lost: safe to import again'],
];

function describeOutcome({ input, status, tracker, errors }: BulkOutcome, line: number) {
  const { trackingNumber } = input;
  return { line, status, trackingNumber, trackerId: tracker?.trackerId ?? null, errors: errors ?? [] };
}

function progressBar({ stderr }: Terminal): cliProgress.SingleBar | undefined {
  if (!stderr.isTTY) return undefined;
  const format = '{bar} {percentage}% · {value} of {total} rows, {created} created';
  return new cliProgress.SingleBar(
    { format, stream: stderr, clearOnComplete: true },
    cliProgress.Presets.shades_classic,
  );
}

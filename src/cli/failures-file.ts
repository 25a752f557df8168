import { constants, rmSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { stringify } from 'csv-stringify/sync';
import type { BulkOutcome } from 'tracking-client';
import type { CsvInput, Row } from './csv-input.ts';
import { CommandError, formatReason } from './terminal.ts';
import { plain } from './text.ts';

/** The file holds names and addresses. */
const OWNER_ONLY_MODE = 0o600;

const FAILURE_COLUMNS: readonly string[] = ['line', 'status', 'reason'];

/** Removes the columns that an earlier import added. */
export function removeFailureColumns(columns: readonly string[]): readonly string[] {
  const hasThem = columns.slice(-FAILURE_COLUMNS.length).join() === FAILURE_COLUMNS.join();
  return hasThem ? columns.slice(0, -FAILURE_COLUMNS.length) : columns;
}

/** Rows with the same mistake share a key: the service's code (its messages differ by row), or our message up to ", got". */
function findReasonKey({ status, errors }: BulkOutcome): string {
  const { code = status, message = '' } = errors?.[0] ?? {};
  return status === 'invalid' ? String(message).replace(/, got .*$/s, '') : code;
}

/** Stores the rows that failed, unchanged, with the reasons. */
export type FailuresFile = Awaited<ReturnType<typeof openFailures>>;

/** Creates the file. An existing file is replaced only with `overwrite`; the input is never replaced, whatever its name is. */
export async function openFailures(path: string, input: CsvInput, overwrite: boolean) {
  const { identity, delimiter, needsBom } = input;
  const columns = removeFailureColumns(input.columns);
  const { handle, isFile } = await openForWriting(path, identity, overwrite);
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
    // A quote keeps spreadsheets from running a reason as a formula. Imported cells stay as they are for the next import.
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
    if (count === 0 && isFile) rmSync(path, { force: true });
  };
  return { path, reasons, count: () => count, add, close };
}

async function openForWriting(path: string, input: Stats, overwrite: boolean) {
  let handle: FileHandle | undefined;
  try {
    // `wx` and O_NOFOLLOW make `open` fail on a link that somebody else has planted.
    const replace = constants.O_WRONLY | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
    handle = await open(path, overwrite ? replace : 'wx', OWNER_ONLY_MODE);
    const stats = await handle.stat();
    if (stats.dev === input.dev && stats.ino === input.ino)
      throw new CommandError('--failures is the same file as the CSV file to import; choose another file');
    if (stats.isFile()) {
      await handle.truncate();
      await handle.chmod(OWNER_ONLY_MODE);
    }
    return { handle, isFile: stats.isFile() };
  } catch (error) {
    await handle?.close();
    if (error instanceof CommandError) throw error;
    if (Object(error).code === 'EEXIST')
      throw new CommandError(`${path} exists; choose another --failures, or replace it with --overwrite`);
    throw new CommandError(`Could not write ${path}: ${formatReason(error)}`);
  }
}

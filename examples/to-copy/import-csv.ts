// Imports a CSV of any size: creates a tracker for each row, reads rows only as fast as it sends them, and writes failed rows
// to a CSV that can be imported again.
import { createReadStream, createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { parse } from 'csv-parse';
import { stringify } from 'csv-stringify';
import type { BulkOutcome, BulkSummary, TrackerInput, TrackingClient } from 'tracking-client';

export const COLUMNS = ['tracking_number', 'order_id', 'destination'] as const;
type Row = Readonly<Record<(typeof COLUMNS)[number], string>>;

function toInput(row: Row): TrackerInput {
  return {
    trackingNumber: row.tracking_number,
    ...(row.order_id === '' ? {} : { clientTrackerId: row.order_id }),
    ...(row.destination === '' ? {} : { destinationCountryCode: row.destination }),
  };
}

/** Reads the CSV row by row, so that even a large file needs little memory. */
async function* readInputs(path: string): AsyncGenerator<TrackerInput> {
  const rows: AsyncIterable<Row> = createReadStream(path).pipe(
    parse({ columns: true, skip_empty_lines: true, trim: true }),
  );
  for await (const row of rows) yield toInput(row);
}

/** Failed rows keep their columns, so that the file can be imported again; two more columns have the reason. */
function toFailedRow({ input, status, errors }: BulkOutcome) {
  return {
    tracking_number: input.trackingNumber,
    order_id: input.clientTrackerId ?? '',
    destination: input.destinationCountryCode ?? '',
    status,
    error: errors?.map(({ code, message }) => `${code}: ${message ?? ''}`).join('; ') ?? '',
  };
}

/** @param failedPath - the file for the failed rows */
export async function importCsv(
  client: TrackingClient,
  path: string,
  failedPath: string,
  onProgress: (summary: BulkSummary) => void,
): Promise<BulkSummary> {
  const failedFile = createWriteStream(failedPath);
  const failed = stringify({ header: true, columns: [...COLUMNS, 'status', 'error'] });
  failed.pipe(failedFile);
  const run = client.trackers.createMany(readInputs(path), { onProgress });
  for await (const outcome of run) {
    if (outcome.status !== 'created' && outcome.status !== 'existing') failed.write(toFailedRow(outcome));
  }
  failed.end();
  await finished(failedFile);
  return run.summary();
}

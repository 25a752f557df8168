// Imports a CSV of any size: its rows become trackers, read only as fast as they are sent, and the rows that failed go into a
// CSV that can be fed in again.
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

/** Reads the CSV line by line; a file of any size takes up no memory. */
async function* readInputs(path: string): AsyncGenerator<TrackerInput> {
  const rows: AsyncIterable<Row> = createReadStream(path).pipe(
    parse({ columns: true, skip_empty_lines: true, trim: true }),
  );
  for await (const row of rows) yield toInput(row);
}

/** Failed rows keep their columns, so the file is an input again; two more say what was wrong. */
function toFailedRow({ input, status, errors }: BulkOutcome) {
  return {
    tracking_number: input.trackingNumber,
    order_id: input.clientTrackerId ?? '',
    destination: input.destinationCountryCode ?? '',
    status,
    error: errors?.map(({ code, message }) => `${code}: ${message ?? ''}`).join('; ') ?? '',
  };
}

/** @param failedPath - where the rows that failed are written */
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

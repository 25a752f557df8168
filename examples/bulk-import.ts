// Imports 2,000 lines of CSV as trackers: reads only as fast as it sends, shows a progress bar and a summary by status, and
// writes the failed rows to a CSV that can be imported again. Without TRACKING_BASE_URL, an embedded fake service allows 3
// requests a second, refuses some rows and loses one response. The import takes 7 seconds.
// Copy to-copy/import-csv.ts into your app. Run: npx tsx examples/bulk-import.ts [rows.csv]
import { createReadStream } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import cliProgress from 'cli-progress';
import pc from 'picocolors';
import { type BulkOutcome, TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { COLUMNS, importCsv } from './to-copy/import-csv.ts';

const ROWS = 2000;

/** Creates a client for the service at `TRACKING_BASE_URL`, or for a fake service. */
function makeClient(): TrackingClient {
  if (process.env['TRACKING_BASE_URL'] !== undefined) return new TrackingClient();
  const fake = createFakeTrackingService();
  if (process.argv[2] === undefined) fake.fail('trackers.createBulk', { kind: 'commitThenDrop' });
  return new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
}

/** Yields rows as a shop would export them: most are valid, some come twice, and some break a rule. */
function* sampleLines(): Generator<string> {
  yield `${COLUMNS.join(',')}\n`;
  for (let row = 0; row < ROWS; row += 1) {
    const isTwice = row % 250 === 249;
    const isOtherParcel = row % 700 === 699;
    const order = isTwice || isOtherParcel ? row - 1 : row;
    const parcel = String(isTwice ? row - 1 : row).padStart(9, '0');
    const number = row % 400 === 399 ? '123456789' : `LP${parcel}CN`;
    yield `${number},order-${order},${row % 900 === 899 ? 'Holland' : 'NL'}\n`;
  }
}

async function countRows(path: string): Promise<number> {
  let lines = 0;
  for await (const line of createInterface({ input: createReadStream(path) })) lines += line === '' ? 0 : 1;
  return lines - 1;
}

const COLOURS: Readonly<Record<BulkOutcome['status'], (text: string) => string>> = {
  created: pc.green,
  existing: pc.cyan,
  invalid: pc.yellow,
  unknown: pc.magenta,
  error: pc.red,
};
const MEANINGS: Readonly<Record<BulkOutcome['status'], string>> = {
  created: 'new trackers',
  existing: 'trackers with the same payload',
  invalid: 'broke a rule, so not sent',
  unknown: 'sent, but the response was lost; safe to import again',
  error: 'refused by the service',
};

const folder = await mkdtemp(join(tmpdir(), 'bulk-import-'));
const path = process.argv[2] ?? join(folder, 'rows.csv');
if (process.argv[2] === undefined) await writeFile(path, sampleLines());
const failedPath = join(folder, 'failed.csv');

const isLive = process.stdout.isTTY === true;
const bar = new cliProgress.SingleBar(
  {
    format: '{bar} {value} of {total} lines, {created} created',
    clearOnComplete: true,
    stream: process.stdout,
  },
  cliProgress.Presets.shades_classic,
);
if (isLive) bar.start(await countRows(path), 0, { created: 0 });

const startedAt = performance.now();
let printed = 0;
const summary = await importCsv(makeClient(), path, failedPath, ({ total, created }) => {
  if (isLive) bar.update(total, { created });
  else if (total >= printed + 500) {
    printed = total;
    console.log(`${total} lines done, ${created} trackers created`);
  }
});
if (isLive) bar.stop();

const { total, ...counts } = summary;
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(`${pc.bold(`${total} lines`)} in ${seconds} s`);
// This type is right: without `total`, the keys of a summary are the statuses.
for (const [status, count] of Object.entries(counts) as [BulkOutcome['status'], number][]) {
  console.log(
    `  ${COLOURS[status](status.padEnd(9))}${String(count).padStart(5)}  ${pc.dim(MEANINGS[status])}`,
  );
}
console.log(`Failed rows: ${failedPath}`);
console.log(pc.dim(`Import them again: npx tsx examples/bulk-import.ts ${failedPath}`));

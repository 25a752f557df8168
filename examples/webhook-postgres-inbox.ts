// Receives webhooks whose events take effect exactly once: the inbox row and the app's own writes share a transaction, so even
// a counter is right when webhooks arrive four times at once and the callback fails after its write. Runs without a key on a
// PostgreSQL inside this process, or on that of DATABASE_URL, in a schema that is dropped at the end. Copy
// to-copy/postgres-webhooks.ts into your app. Run: npx tsx examples/webhook-postgres-inbox.ts
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import pc from 'picocolors';
import { TrackingClient } from 'tracking-client';
import type { TransactionSource } from 'tracking-client/postgres';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { PARCELS_SQL, parcelWebhooks } from './to-copy/postgres-webhooks.ts';

async function openDatabase(): Promise<{ pool: TransactionSource; name: string; close(): Promise<void> }> {
  const connectionString = process.env['DATABASE_URL'];
  if (connectionString !== undefined) {
    const pool = new pg.Pool({ connectionString });
    return { pool, name: 'the PostgreSQL of DATABASE_URL', close: () => pool.end() };
  }
  const pool = await PGlite.create();
  return { pool, name: 'a PostgreSQL inside this process', close: () => pool.close() };
}

const { pool, name, close } = await openDatabase();
const schema = 'webhook_inbox_example';
await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
await pool.query(`CREATE SCHEMA ${schema}`);
await pool.query(PARCELS_SQL(schema));
console.log(`Parcels and inbox are in ${name}.`);

let breaksLeft = 3;
const secret = 'whsec-example';
const { webhooks, createTable } = parcelWebhooks(pool, secret, {
  schema,
  afterWrites: ({ trackingNumber, status }) => {
    if (breaksLeft-- > 0) throw new Error(`${trackingNumber}: failed after counting "${status}"`);
    console.log(`  ${pc.green('counted')} ${trackingNumber}: ${status}`);
  },
});
await createTable();

const fake = createFakeTrackingService();
const client = new TrackingClient({ baseUrl: fake.baseUrl, apiKey: fake.apiKey, fetch: fake.fetch });
const numbers = ['RR123456785CN', 'LA680658838NL'];
for (const trackingNumber of numbers) {
  await client.trackers.create({ trackingNumber });
  fake
    .shipment(trackingNumber)
    .addEvent({ statusMilestone: 'info_received', location: 'Beijing' })
    .addEvent({ statusMilestone: 'in_transit', location: 'Beijing' })
    .addEvent({ statusMilestone: 'out_for_delivery', location: 'SAN RAFAEL, CA 94901' })
    .deliver();
}

console.log('Every webhook is sent four times, shuffled, eight at once, and repeated until a 2xx:');
const sender = createWebhookSender({
  target: webhooks,
  secret,
  fake,
  duplicates: 3,
  shuffle: true,
  concurrency: 8,
  until2xx: true,
});
const report = await sender.flush();

const { rows } = await pool.query(
  `SELECT tracking_number, counted, status FROM ${schema}.parcels ORDER BY tracking_number`,
);
console.log(
  `\n${report.sent.length} requests for ${report.items} webhooks, ${report.lost} lost; 4 events happened to each parcel`,
);
console.table(rows);

await webhooks.close();
await pool.query(`DROP SCHEMA ${schema} CASCADE`);
await close();

// Shows webhooks whose events take effect exactly once: the inbox row and the application's own writes share a transaction, so even
// a counter comes out right when webhooks arrive four times at once and the handler breaks after it has written. Runs on a
// PostgreSQL inside this process, without a key; set DATABASE_URL to run on your own, in a schema that is dropped at the end.
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import pc from 'picocolors';
import { TrackingClient } from 'tracking-client';
import { type TransactionSource, transactionalInbox } from 'tracking-client/postgres';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { createWebhookHandler } from 'tracking-client/webhooks';

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
await pool.query(`CREATE TABLE ${schema}.parcels (tracking_number text PRIMARY KEY, counted integer)`);
console.log(`Parcels and inbox are in ${name}.`);

let breaksLeft = 3;
const inbox = transactionalInbox({
  pool,
  table: `${schema}.inbox`,
  onError: (error) =>
    console.log(`  ${pc.yellow('undone')}  ${error instanceof Error ? error.message : error}`),
});
await inbox.createTable(); // Or put the text of inboxTableSql() into a migration of your own.

const secret = 'whsec-example';
const webhooks = createWebhookHandler({
  secret,
  inbox,
  handler: async (event, { transaction, delivery, attempt }) => {
    const trackingNumber = delivery.tracker.trackingNumber;
    // Counting up is the write that suffers from every repeat and every half-done try.
    await transaction.query(
      `INSERT INTO ${schema}.parcels VALUES ($1, 1)
       ON CONFLICT (tracking_number) DO UPDATE SET counted = parcels.counted + 1`,
      [trackingNumber],
    );
    if (breaksLeft-- > 0) throw new Error(`${trackingNumber}: broke after counting "${event.status}"`);
    const tries = attempt === 1 ? '' : pc.dim(` (attempt ${attempt})`);
    console.log(`  ${pc.green('counted')} ${trackingNumber}: ${event.status}${tries}`);
  },
});

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

console.log('Every webhook is sent four times, shuffled, eight at once, and again until we answer 2xx:');
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

const { rows } = await pool.query(`SELECT * FROM ${schema}.parcels ORDER BY tracking_number`);
console.log(
  `\n${report.sent.length} requests for ${report.items} webhooks, ${report.lost} lost; 4 events happened to each parcel`,
);
console.table(rows);

await webhooks.close();
await pool.query(`DROP SCHEMA ${schema} CASCADE`);
await close();

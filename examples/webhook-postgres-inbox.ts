// Receives webhooks whose events take effect exactly once: the key of the event and the app's own writes share a transaction, so
// even a counter is right when webhooks arrive four times at once and the callback fails after its write. Runs without an API key
// on a PostgreSQL inside this process. If you pass the URL of a database, the example creates a schema in it, and drops this
// schema at the end. Copy to-copy/postgres-webhooks.ts into your app. Run: npx tsx examples/webhook-postgres-inbox.ts
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import pc from 'picocolors';
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService, createWebhookSender } from 'tracking-client/testing';
import { type InTransaction, parcelWebhooks, tablesSql } from './to-copy/postgres-webhooks.ts';

interface Database {
  readonly name: string;
  query(sql: string): Promise<{ rows: unknown[] }>;
  readonly inTransaction: InTransaction;
  close(): Promise<void>;
}

async function openDatabase(): Promise<Database> {
  const connectionString = process.argv[2];
  if (connectionString === undefined) {
    const database = await PGlite.create();
    return {
      name: 'a PostgreSQL inside this process',
      query: (sql) => database.query(sql),
      inTransaction: (work) => database.transaction(work),
      close: () => database.close(),
    };
  }
  const pool = new pg.Pool({ connectionString });
  // Without these listeners, Node ends the process when the database closes a connection.
  pool.on('error', console.error);
  pool.on('connect', (connection) => connection.on('error', console.error));
  return {
    name: `the PostgreSQL at ${new URL(connectionString).host}`,
    query: (sql) => pool.query(sql),
    inTransaction: async (work) => {
      const transaction = await pool.connect();
      try {
        await transaction.query('BEGIN');
        await work(transaction);
        await transaction.query('COMMIT');
        transaction.release();
      } catch (error) {
        transaction.release(true); // closes the connection, so that the database rolls back
        throw error;
      }
    },
    close: () => pool.end(),
  };
}

const { name, query, inTransaction, close } = await openDatabase();
const schema = 'webhook_inbox_example';
await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
await query(`CREATE SCHEMA ${schema}`);
for (const sql of tablesSql(schema)) await query(sql);
console.log(`Parcels and handled events are in ${name}.`);

let breaksLeft = 3;
const secret = 'whsec-example';
const webhooks = parcelWebhooks(inTransaction, secret, {
  schema,
  afterWrites: ({ trackingNumber, status }) => {
    if (breaksLeft-- > 0) throw new Error(`${trackingNumber}: failed after counting "${status}"`);
    console.log(`  ${pc.green('counted')} ${trackingNumber}: ${status}`);
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
    .deliver()
    .addEvent({ statusMilestone: 'out_for_delivery', status: 'Out for delivery, noted late' });
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

const { rows } = await query(
  `SELECT tracking_number, counted, status FROM ${schema}.parcels ORDER BY tracking_number`,
);
console.log(
  `\n${report.sent.length} requests for ${report.items} webhooks, ${report.lost} lost; 5 events happened to each parcel`,
);
console.table(rows);

await webhooks.close();
await query(`DROP SCHEMA ${schema} CASCADE`);
await close();

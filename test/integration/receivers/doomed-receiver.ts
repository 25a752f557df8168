/** A process that handles webhooks at once and is killed while it commits them; it says how far it is. */
import { once } from 'node:events';
import pg from 'pg';
import { PostgresDedupeStore } from '../../../src/postgres/index.ts';
import { WebhookInbox } from '../../../src/webhooks/index.ts';

const [, , connectionString, table, application_name, count] = process.argv;
const client = new pg.Pool({ connectionString, application_name, max: 4 });
const inbox = new WebhookInbox({ store: new PostgresDedupeStore({ pool: client, table }), leaseMs: 300 });
const told = once(process.stdin, 'data');
for (let index = 0; index < Number(count); index += 1) {
  void inbox.process({ trackerId: `doomed-${index}`, events: [{ eventId: 'a' }] }, async (_, { key }) => {
    console.log(`handling ${key}`);
    await told;
  });
}

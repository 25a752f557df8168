import { inboxTableSql, PostgresDedupeStore, type Queryable } from 'tracking-client/postgres';
import { createWebhookHandler, type DedupeStore, WebhookInbox } from 'tracking-client/webhooks';

/** Shaped as the pool of `pg`, which can also call back. */
interface Pool extends Queryable {
  readonly totalCount: number;
  connect(): Promise<Connection>;
  connect(callback: (error: Error | undefined, connection: Connection) => void): void;
}

interface Connection extends Queryable {
  release(destroy?: boolean): void;
}

export async function receiveWith(pool: Pool): Promise<void> {
  const store = new PostgresDedupeStore({ pool, table: 'shop.inbox' });
  await store.createTable();
  const purged: number = await store.purge();
  const shared: DedupeStore = store;
  createWebhookHandler({
    secret: 'secret',
    inbox: new WebhookInbox({ store: shared }),
    onEvent: async (event, { key, message }) => {
      const connection = await pool.connect();
      const { rows } = await connection.query('SELECT $1', [message.tracker.trackerId]);
      console.log(rows.length, key, event.eventId);
      connection.release();
    },
  });
  console.log(purged.toFixed(), inboxTableSql().trim());
}

export function misspelt(pool: Pool): void {
  // @ts-expect-error -- `tableName`
  void new PostgresDedupeStore({ pool, tableName: 'inbox' });
}

import {
  inboxTableSql,
  PostgresDedupeStore,
  type Queryable,
  TransactionalInbox,
  type TransactionContext,
} from 'tracking-client/postgres';
import { createWebhookHandler, type DedupeStore } from 'tracking-client/webhooks';

/** Shaped as the pool of `pg`, which can also call back. */
interface Pool extends Queryable {
  connect(): Promise<Connection>;
  connect(callback: (error: Error | undefined, connection: Connection) => void): void;
}

interface Connection extends Queryable {
  readonly processID: number;
  release(destroy?: boolean): void;
}

export async function receiveWith(pool: Pool): Promise<void> {
  const store = new PostgresDedupeStore({ pool, table: 'shop.inbox' });
  await store.createTable();
  const purged: number = await store.purge();
  const shared: DedupeStore = store;
  const inbox: TransactionalInbox<Pool> = new TransactionalInbox({ pool, table: 'shop.inbox' });
  createWebhookHandler({
    secret: 'secret',
    inbox,
    onEvent: async (event, { transaction, message }) => {
      const { rows } = await transaction.query('SELECT $1', [message.tracker.trackerId]);
      console.log(rows.length, transaction.processID.toFixed(), event.eventId);
    },
  });
  console.log(purged.toFixed(), shared, inboxTableSql().trim());
}

export function misspelt(transaction: TransactionContext<Pool>['transaction'], pool: Pool): void {
  // @ts-expect-error -- `processId`
  console.log(transaction.processId);
  // @ts-expect-error -- `tableName`
  void new PostgresDedupeStore({ pool, tableName: 'inbox' });
  // @ts-expect-error -- a single connection lends none
  void new TransactionalInbox({ pool: transaction });
}

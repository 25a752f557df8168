// src/do-once-kysely.ts
import type { Kysely, Transaction } from 'kysely';

export interface Tables {
  handled_events: { key: string };
  orders: { id: string; event_count: number }; // and your other tables
}

/** Inserts the key and does the work in one transaction. Does nothing if the table has the key. */
export function doOnce(
  db: Kysely<Tables>,
  key: string,
  work: (transaction: Transaction<Tables>) => Promise<unknown>,
) {
  return db.transaction().execute(async (transaction) => {
    const insert = transaction.insertInto('handled_events').values({ key });
    const inserted = await insert
      .onConflict((conflict) => conflict.doNothing())
      .returning('key')
      .execute();
    if (inserted.length === 1) await work(transaction);
  });
}

// src/do-once-knex.ts
import type { Knex } from 'knex';

/** Inserts the key and does the work in one transaction. Does nothing if the table has the key. */
export function doOnce(db: Knex, key: string, work: (transaction: Knex.Transaction) => Promise<unknown>) {
  return db.transaction(async (transaction) => {
    const inserted = await transaction('handled_events')
      .insert({ key })
      .onConflict()
      .ignore()
      .returning('key');
    if (inserted.length === 1) await work(transaction);
  });
}

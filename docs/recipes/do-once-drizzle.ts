// src/do-once-drizzle.ts
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import { pgTable, text } from 'drizzle-orm/pg-core';

const handledEvents = pgTable('handled_events', { key: text().primaryKey() });

/** Inserts the key and does the work in one transaction. Does nothing if the table has the key. */
export function doOnce(db: NodePgDatabase, key: string, work: Parameters<typeof db.transaction>[0]) {
  return db.transaction(async (transaction) => {
    const inserted = await transaction
      .insert(handledEvents)
      .values({ key })
      .onConflictDoNothing()
      .returning();
    if (inserted.length === 1) await work(transaction);
  });
}

// src/do-once-typeorm.ts
import type { DataSource, EntityManager } from 'typeorm';

/** Inserts the key and does the work in one transaction. Does nothing if the table has the key. */
export function doOnce(db: DataSource, key: string, work: (transaction: EntityManager) => Promise<unknown>) {
  return db.transaction(async (transaction) => {
    const insert = 'INSERT INTO handled_events (key) VALUES ($1) ON CONFLICT DO NOTHING RETURNING key';
    const inserted: unknown[] = await transaction.query(insert, [key]);
    if (inserted.length === 1) await work(transaction);
  });
}

/**
 * Remembers handled events in PostgreSQL.
 *
 * @module tracking-client/postgres
 */

export { PostgresDedupeStore, type PostgresDedupeStoreOptions } from './dedupe-store.ts';
export type { Queryable } from './queryable.ts';
export { inboxTableSql } from './table.ts';

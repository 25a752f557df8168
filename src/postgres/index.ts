/**
 * Remembers handled events in PostgreSQL.
 *
 * @module tracking-client/postgres
 */

export type { Queryable } from './connection.ts';
export { PostgresDedupeStore, type PostgresDedupeStoreOptions } from './dedupe-store.ts';
export { inboxTableSql } from './table.ts';

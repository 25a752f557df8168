/**
 * Remembers handled events in PostgreSQL.
 *
 * @module tracking-client/postgres
 */

export { PostgresDedupeStore, type PostgresDedupeStoreOptions } from './dedupe-store.ts';
export { inboxTableSql, type Queryable } from './table.ts';

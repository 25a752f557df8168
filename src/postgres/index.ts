/**
 * Remembers handled events in PostgreSQL, on its own or in one transaction with your writes.
 *
 * @module tracking-client/postgres
 */

export { PostgresDedupeStore, type PostgresDedupeStoreOptions } from './dedupe-store.ts';
export { inboxTableSql, type Queryable } from './table.ts';
export {
  TransactionalInbox,
  type TransactionalInboxOptions,
  type TransactionContext,
  type TransactionRunner,
  type TransactionSource,
} from './transactional-inbox.ts';

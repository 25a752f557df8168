export { PostgresDedupeStore, type PostgresDedupeStoreOptions } from './dedupe-store.ts';
export { inboxTableSql, type PurgeOptions } from './inbox-table.ts';
export type { Queryable } from './queryable.ts';
export type {
  ConnectionPool,
  PooledConnection,
  TransactionOf,
  TransactionRunner,
  TransactionSource,
} from './transaction.ts';
export {
  type TransactionalInbox,
  type TransactionalInboxOptions,
  type TransactionContext,
  transactionalInbox,
} from './transactional-inbox.ts';

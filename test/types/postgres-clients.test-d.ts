import type { PGlite, Transaction } from '@electric-sql/pglite';
import type pg from 'pg';
import { expectTypeOf, test } from 'vitest';
import {
  type PostgresDedupeStore,
  type Queryable,
  TransactionalInbox,
  type TransactionContext,
  type TransactionSource,
} from '../../src/postgres/index.ts';
import { createWebhookHandler, type DedupeStore } from '../../src/webhooks/index.ts';

test('Pool, PoolClient and Client of pg, and PGlite → accepted by the store', () => {
  expectTypeOf<pg.Pool>().toExtend<Queryable>();
  expectTypeOf<pg.PoolClient>().toExtend<Queryable>();
  expectTypeOf<pg.Client>().toExtend<Queryable>();
  expectTypeOf<PGlite>().toExtend<Queryable>();
  expectTypeOf<PostgresDedupeStore>().toExtend<DedupeStore>();
});

test('Pool of pg and PGlite → accepted by the inbox, each with its own transaction type', () => {
  expectTypeOf<pg.Pool>().toExtend<TransactionSource>();
  expectTypeOf<PGlite>().toExtend<TransactionSource>();
  expectTypeOf<TransactionContext<pg.Pool>['transaction']>().toExtend<pg.PoolClient>();
  expectTypeOf<TransactionContext<PGlite>['transaction']>().toEqualTypeOf<Transaction>();
});

test('a single Client of pg → not accepted, because two webhooks would share its transaction', () => {
  expectTypeOf<pg.Client>().not.toExtend<TransactionSource>();
});

test('the inbox in a webhook handler → callbacks get a typed transaction', () => {
  const makeInbox = (pool: pg.Pool) => new TransactionalInbox({ pool });
  createWebhookHandler({
    secret: false,
    inbox: makeInbox({} as pg.Pool), // Only types are checked here.
    onEvent: async (event, { transaction, message }) => {
      expectTypeOf(transaction).toExtend<pg.PoolClient>();
      expectTypeOf(message.tracker.trackerId).toEqualTypeOf<string | null | undefined>();
      expectTypeOf(event.eventId).toEqualTypeOf<string | null | undefined>();
    },
    onEvents: (_, { transaction }) => {
      expectTypeOf(transaction).toExtend<pg.PoolClient>();
    },
  });
});

test('onDeadLetter → gets a typed transaction', () => {
  new TransactionalInbox({
    pool: {} as PGlite, // Only types are checked here.
    onDeadLetter: (_, { transaction, attempt }) => {
      expectTypeOf(transaction).toEqualTypeOf<Transaction>();
      expectTypeOf(attempt).toBeNumber();
    },
  });
});

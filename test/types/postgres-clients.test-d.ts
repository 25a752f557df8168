import type { PGlite, Transaction } from '@electric-sql/pglite';
import type pg from 'pg';
import { expectTypeOf, test } from 'vitest';
import {
  type PostgresDedupeStore,
  type Queryable,
  type TransactionOf,
  type TransactionSource,
  transactionalInbox,
} from '../../src/postgres/index.ts';
import { createWebhookHandler, type DedupeStore } from '../../src/webhooks/index.ts';

test('Pool, PoolClient and Client of pg, and PGlite → accepted by the store', () => {
  expectTypeOf<pg.Pool>().toExtend<Queryable>();
  expectTypeOf<pg.PoolClient>().toExtend<Queryable>();
  expectTypeOf<pg.Client>().toExtend<Queryable>();
  expectTypeOf<PGlite>().toExtend<Queryable>();
  expectTypeOf<PostgresDedupeStore>().toExtend<DedupeStore>();
});

test('Pool of pg and PGlite → sources of transactions, each of its own kind', () => {
  expectTypeOf<pg.Pool>().toExtend<TransactionSource>();
  expectTypeOf<PGlite>().toExtend<TransactionSource>();
  expectTypeOf<TransactionOf<pg.Pool>>().toExtend<pg.PoolClient>();
  expectTypeOf<TransactionOf<PGlite>>().toEqualTypeOf<Transaction>();
});

test('a single Client of pg → no source: two webhooks would share its transaction', () => {
  expectTypeOf<pg.Client>().not.toExtend<TransactionSource>();
});

test('the inbox in a webhook handler → the handler gets a typed transaction', () => {
  const inboxOf = (pool: pg.Pool) => transactionalInbox({ pool });
  createWebhookHandler({
    inbox: inboxOf({} as pg.Pool), // Only types are checked here.
    handler: async (event, { transaction, delivery }) => {
      expectTypeOf(transaction).toExtend<pg.PoolClient>();
      expectTypeOf(delivery.tracker.trackerId).toEqualTypeOf<string | null | undefined>();
      expectTypeOf(event.eventId).toEqualTypeOf<string | null | undefined>();
    },
    onDelivery: (_, { transaction }) => {
      expectTypeOf(transaction).toExtend<pg.PoolClient>();
    },
  });
});

test('onDeadLetter → gets a typed transaction', () => {
  transactionalInbox({
    pool: {} as PGlite, // Only types are checked here.
    onDeadLetter: (_, { transaction, attempt }) => {
      expectTypeOf(transaction).toEqualTypeOf<Transaction>();
      expectTypeOf(attempt).toBeNumber();
    },
  });
});

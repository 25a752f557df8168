import type { PGlite } from '@electric-sql/pglite';
import type pg from 'pg';
import { expectTypeOf, test } from 'vitest';
import type { PostgresDedupeStore, Queryable } from '../../src/postgres/index.ts';
import type { DedupeStore } from '../../src/webhooks/index.ts';

test('Pool, PoolClient and Client of pg, and PGlite → accepted by the store', () => {
  expectTypeOf<pg.Pool>().toExtend<Queryable>();
  expectTypeOf<pg.PoolClient>().toExtend<Queryable>();
  expectTypeOf<pg.Client>().toExtend<Queryable>();
  expectTypeOf<PGlite>().toExtend<Queryable>();
  expectTypeOf<PostgresDedupeStore>().toExtend<DedupeStore>();
});

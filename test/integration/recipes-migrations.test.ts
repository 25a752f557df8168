// The migrations of docs/recipes/exactly-once.md: each tool migrates a new database, and the store of the page uses the table.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import knex, { type Knex } from 'knex';
import { Kysely, PostgresDialect, sql } from 'kysely';
import { inboxTableSql, PostgresDedupeStore, type Queryable } from 'tracking-client/postgres';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { recipeFiles } from '../readme/support/recipes.ts';
import { makePool } from './postgres-schema.ts';
import { makeRecipeFolder } from './recipe-folder.ts';
import { describeWithAnyPostgres } from './services.ts';

await describeWithAnyPostgres('the migrations of exactly-once.md on a PostgreSQL', (create) => {
  const cleanUps: (() => Promise<unknown>)[] = [];
  let folder: string;
  let databaseUrl: string;

  // Each test has a database of its own, because the recipe and the tools name their schemas.
  beforeEach(async () => {
    const { url, drop } = await create();
    databaseUrl = url;
    const recipe = await makeRecipeFolder('exactly-once');
    folder = recipe.folder;
    cleanUps.push(recipe.remove, drop);
  });
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });

  function connect(): Queryable {
    const pool = makePool({ connectionString: databaseUrl });
    cleanUps.push(() => pool.end());
    return pool;
  }

  async function expectStoreToWork(pool: Queryable = connect()): Promise<void> {
    const store = new PostgresDedupeStore({ pool, table: 'tracking.inbox' }); // as on the page
    const lease = { token: 'one', leaseMs: 60_000 };
    expect(await store.claim(['a'], lease)).toEqual([{ status: 'acquired', attempt: 1 }]);
    await store.commit(['a'], { retainMs: 60_000 });
    expect(await store.claim(['a'], { ...lease, token: 'two' })).toEqual([{ status: 'done' }]);
  }

  const importSql = (): Promise<{ up: string; down: string }> =>
    import(join(folder, 'src/inbox-migration.ts'));

  it('Knex migrates → the store claims and commits; Knex rolls back → the schema is gone', async () => {
    const db = knex({ client: 'pg', connection: databaseUrl });
    cleanUps.push(() => db.destroy());
    const { up, down } = await importSql();
    const migrationSource = {
      getMigrations: async () => ['tracking_inbox'],
      getMigrationName: (name: string) => name,
      getMigration: async () => ({
        up: (inner: Knex) => inner.raw(up),
        down: (inner: Knex) => inner.raw(down),
      }),
    };
    await db.migrate.latest({ migrationSource });
    await expectStoreToWork();
    await db.migrate.rollback({ migrationSource });
    expect(await db('pg_namespace').where({ nspname: 'tracking' })).toEqual([]);
  });

  it('Kysely migrates up and down → the store claims and commits, then the schema is gone', async () => {
    const pool = makePool({ connectionString: databaseUrl });
    const db = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) });
    cleanUps.push(() => db.destroy());
    const { up, down } = await importSql();
    await sql.raw(up).execute(db);
    await expectStoreToWork();
    await sql.raw(down).execute(db);
    const { rows } = await sql`SELECT FROM pg_namespace WHERE nspname = 'tracking'`.execute(db);
    expect(rows).toEqual([]);
  });

  it('Drizzle migrates twice → the store claims and commits', async () => {
    const tag = '0000_tracking_inbox';
    const entries = [{ idx: 0, version: '7', when: 1_767_225_600_000, tag, breakpoints: true }];
    await mkdir(join(folder, 'drizzle/meta'));
    // Written by `drizzle-kit generate`.
    await writeFile(
      join(folder, 'drizzle/meta/_journal.json'),
      JSON.stringify({ version: '7', dialect: 'postgresql', entries }),
    );
    const pool = makePool({ connectionString: databaseUrl });
    cleanUps.push(() => pool.end());
    for (const _time of ['first', 'second'])
      await migrate(drizzle(pool), { migrationsFolder: join(folder, 'drizzle') });
    await expectStoreToWork();
  });

  it('TypeORM migrates → the store claims and commits with its pool; TypeORM rolls back → the schema is gone', async () => {
    const statements = await importSql();
    class TrackingInbox1767225600000 implements MigrationInterface {
      up = (queryRunner: QueryRunner) => queryRunner.query(statements.up);
      down = (queryRunner: QueryRunner) => queryRunner.query(statements.down);
    }
    const migrations = [TrackingInbox1767225600000];
    const db = await new DataSource({ type: 'postgres', url: databaseUrl, migrations }).initialize();
    cleanUps.push(() => db.destroy());
    await db.runMigrations();
    // The driver of a PostgreSQL, which has its pool of `pg` as `master`.
    await expectStoreToWork((db.driver as PostgresDriver).master);
    await db.undoLastMigration();
    expect(await db.query("SELECT FROM pg_namespace WHERE nspname = 'tracking'")).toEqual([]);
  });
});

it('the SQL of the page → the SQL of this version', () => {
  const migration = recipeFiles('exactly-once').find(({ path }) => path.startsWith('drizzle/'))?.code;
  expect(migration).toContain(inboxTableSql('tracking.inbox'));
});

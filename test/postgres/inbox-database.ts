import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { TransactionalInbox } from '../../src/postgres/index.ts';

/** A PostgreSQL for the tests of a file, each with an empty inbox and an empty table `effects`; call it at the file's top. */
export function useInboxDatabase(): () => PGlite {
  let database: PGlite;
  beforeAll(async () => {
    database = await PGlite.create();
  }, 120_000);
  afterAll(() => database.close());
  beforeEach(async () => {
    await new TransactionalInbox({ pool: database }).createTable();
    await database.query('CREATE TABLE effects (id text)');
  });
  afterEach(async () => {
    await database.exec('DROP TABLE tracking_inbox; DROP TABLE effects; RESET lock_timeout');
  });
  return () => database;
}

/** A push of events of one tracker; the first is the oldest. */
export function push(...ids: string[]) {
  const events = ids.map((eventId, order) => ({ eventId, occurrenceDatetime: '2021-03-04', order }));
  return { trackerId: 't1', events };
}

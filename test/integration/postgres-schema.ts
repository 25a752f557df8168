import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';

/** A schema for one suite, dropped at its end, and a pool to use it with; call it at the top of the suite. */
export function useSchema(url: string) {
  const schema = `test_${randomUUID().replaceAll('-', '')}`;
  const pool = makePool({ connectionString: url, max: 12 });
  beforeAll(() => pool.query(`CREATE SCHEMA ${schema}`));
  afterAll(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await pool.end();
  });
  return { schema, pool };
}

/**
 * A pool that survives when the server ends an idle connection; without a listener that ends the process. It has few connections,
 * because all tests together must stay below the limit of the server.
 */
export function makePool(config: pg.PoolConfig): pg.Pool {
  return new pg.Pool({ max: 4, ...config }).on('error', () => {});
}

import type pg from 'pg';

/** Commits once the work resolves. If the work rejects, closes the connection, so that the database rolls back. */
export async function inTransaction(
  pool: pg.Pool,
  work: (transaction: pg.PoolClient) => Promise<void>,
): Promise<void> {
  const transaction = await pool.connect();
  try {
    await transaction.query('BEGIN');
    await work(transaction);
    await transaction.query('COMMIT');
    transaction.release();
  } catch (error) {
    transaction.release(true);
    throw error;
  }
}

import { sleep } from '../common/clock.ts';
import { readError } from '../common/foreign.ts';
import { hasMethods, isJsonObject, option } from '../common/validation.ts';

const MAX_REPEATS = 3;
const MAX_FIRST_PAUSE_MS = 20;

/** Anything that runs a statement: a `Pool` or `Client` of `pg`, a PGlite database, or your own adapter. */
export interface Queryable {
  /**
   * Runs one statement.
   *
   * @param text - SQL whose values are numbered `$1`, `$2`, …
   * @param values - the values
   * @returns the rows, each an object by column name
   * @throws an error with the SQLSTATE as `code`
   */
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

export const queryableOption = option<Queryable>(
  'a pool or client of `pg`, or an object with a method `query(text, values)`',
  (value) => hasMethods(value, 'query'),
);

/** A row by column name. Drivers may return numbers as text. */
export type Row = Readonly<Record<string, unknown>>;

/** The SQLSTATE of an error of the database; empty if it has none. */
export function getSqlState(error: unknown): string {
  return readError(error)?.code ?? '';
}

/**
 * Runs a statement. Repeats it up to three times after a deadlock (40P01), and if transactions could not be serialized (40001).
 * The statement has done nothing then.
 */
export async function runStatement(
  pool: Queryable,
  text: string,
  values?: readonly unknown[],
): Promise<readonly Row[]> {
  for (let repeats = 0; ; repeats += 1) {
    try {
      const { rows } = await pool.query(text, values && [...values]);
      return rows.map((row) => (isJsonObject(row) ? row : {}));
    } catch (error) {
      if (repeats === MAX_REPEATS || !['40001', '40P01'].includes(getSqlState(error))) throw error;
    }
    // The pause is random, because two transactions in conflict must not try again at the same time.
    await sleep(Math.random() * MAX_FIRST_PAUSE_MS * 4 ** repeats);
  }
}

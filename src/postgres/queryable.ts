import { sleep } from '../common/clock.ts';
import { readError } from '../common/foreign.ts';
import { kindOf } from '../common/messages.ts';
import { hasMethods, option } from '../common/option-schemas.ts';
import { isJsonObject } from '../common/parsing.ts';
import { ConfigurationError } from '../errors.ts';

const MAX_REPEATS = 3;
const MAX_FIRST_PAUSE_MS = 20;
const ADVICE =
  'if an ORM or query builder has made the pool, pass the pool itself, such as `dataSource.driver.master` of TypeORM, or your own adapter';

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
  `a pool or client of \`pg\`, or an object whose \`query(text, values)\` resolves to \`{ rows }\` (${ADVICE})`,
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
 *
 * @throws ConfigurationError if the pool takes or returns something else than the pool of `pg`
 */
export async function runStatement(
  pool: Queryable,
  text: string,
  values?: readonly unknown[],
): Promise<readonly Row[]> {
  for (let repeats = 0; ; repeats += 1) {
    try {
      return readRows(await pool.query(text, values && [...values]));
    } catch (error) {
      if (isWithoutValues(error)) refusePool('pass on its values', 'a statement without values', error);
      if (repeats === MAX_REPEATS || !['40001', '40P01'].includes(getSqlState(error))) throw error;
    }
    // The pause is random, because two transactions in conflict must not try again at the same time.
    await sleep(Math.random() * MAX_FIRST_PAUSE_MS * 4 ** repeats);
  }
}

/** True if the server got no value for `$1`: the pool takes values in another form. */
function isWithoutValues(error: unknown): boolean {
  return getSqlState(error) === '42P02' || readError(error)?.message === 'there is no parameter $1';
}

function readRows(reply: unknown): readonly Row[] {
  const rows = isJsonObject(reply) ? reply['rows'] : undefined;
  if (!Array.isArray(rows)) refusePool('resolve to `{ rows }`', kindOf(reply));
  if (rows.some(Array.isArray)) refusePool('resolve to rows that are objects', 'rows that are arrays');
  return rows.map((row: unknown) => (isJsonObject(row) ? row : {}));
}

function refusePool(rule: string, got: string, cause?: unknown): never {
  const broken = `to ${rule}, got ${got}`;
  const message = `Expected \`pool.query(text, values)\` ${broken}; ${ADVICE}`;
  throw new ConfigurationError(message, {
    ...{ option: 'pool', rule: broken },
    ...(cause !== undefined && { cause }),
  });
}

import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

/** Anything that runs a statement: a `Pool` or `Client` of `pg`, a PGlite database, or your own adapter. */
export interface Queryable {
  /**
   * Runs one statement.
   *
   * @param text - SQL whose values are numbered `$1`, `$2`, …
   * @param values - the values
   * @returns the rows, each an object by column name
   * @throws the database's own error, with the SQLSTATE as `code`
   */
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A row as PostgreSQL names its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** Runs a statement and gives its rows. */
export async function queryRows(client: Queryable, text: string, values: unknown[]): Promise<readonly Row[]> {
  const { rows } = await client.query(text, values);
  return rows as Row[]; // Every driver gives a row as an object by column name unless it is asked for arrays.
}

/** @throws ConfigurationError when it has no `query` */
export function requireQueryable(client: unknown): void {
  const isQueryable =
    typeof client === 'object' && client !== null && 'query' in client && typeof client.query === 'function';
  if (!isQueryable) {
    throw new ConfigurationError(
      `Expected \`client\` to have a method \`query(text, values)\`, got ${kindOf(client)}`,
    );
  }
}

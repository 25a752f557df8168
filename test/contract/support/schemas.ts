import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

const SCHEMA_FOLDER = new URL('../schemas/', import.meta.url);

/** The schemas, one file a record or envelope, written by hand from the contract and never generated from our own. */
export const SCHEMA_FILES: readonly string[] = readdirSync(SCHEMA_FOLDER).filter((file) =>
  file.endsWith('.json'),
);

const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true });
for (const file of SCHEMA_FILES)
  ajv.addSchema(JSON.parse(readFileSync(new URL(file, SCHEMA_FOLDER), 'utf8')));

/**
 * Where a value breaks the contract, one line a breach; empty when it keeps it.
 *
 * @param schema - the name of a file in `schemas`, without its ending, or a schema of its own
 */
export function breachesOf(schema: string | object, value: unknown): string[] {
  const validate = typeof schema === 'string' ? ajv.getSchema(`${schema}.json`) : ajv.compile(schema);
  if (validate === undefined) throw new Error(`There is no schema ${JSON.stringify(schema)}`);
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`);
}

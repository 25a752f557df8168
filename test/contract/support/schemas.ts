import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';

const SCHEMA_FOLDER = new URL('../schemas/', import.meta.url);

/** Each record and envelope has a file that is written by hand, so that it can disagree with the schemas in `src`. */
export const SCHEMA_FILES: readonly string[] = readdirSync(SCHEMA_FOLDER).filter((file) =>
  file.endsWith('.json'),
);

const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true });
for (const file of SCHEMA_FILES)
  ajv.addSchema(JSON.parse(readFileSync(new URL(file, SCHEMA_FOLDER), 'utf8')));

/** Lists the breaches of a value by the schema in the file of that name; empty when it keeps the contract. */
export function findBreaches(schema: string, value: unknown): string[] {
  const validate = ajv.getSchema(`${schema}.json`);
  if (validate === undefined) throw new Error(`There is no schema ${schema}`);
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`);
}

import { z } from 'zod';

/**
 * Validations before a schema is compiled: that takes about ten milliseconds, which a program that asks once or twice would
 * pay for nothing, and saves most of the cost of every later one.
 */
const HOT_AFTER = 50;

interface Heat {
  uses: number;
  compiled: z.ZodType | undefined;
}

const heats = new WeakMap<z.ZodType, Heat>();

/**
 * The schema to validate with: the given one, or its compiled form once it is used often. Both give the same results.
 *
 * @param schema - a schema that lives as long as the program
 */
export function hotSchema<Schema extends z.ZodType>(schema: Schema): Schema {
  let heat = heats.get(schema);
  if (heat === undefined) {
    heat = { uses: 0, compiled: undefined };
    heats.set(schema, heat);
  }
  heat.uses += 1;
  if (heat.uses > HOT_AFTER) heat.compiled ??= z.compile(schema);
  // Sound: `compile` gives a clone of the very schema that is the key.
  return (heat.compiled as Schema | undefined) ?? schema;
}

import { z } from 'zod';

/**
 * A record the service sends: unknown fields are kept at run time, while the inferred type stays closed,
 * so a misspelt field does not compile.
 */
export function record<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strip> {
  // Sound: a loose object's output is the stripped output plus extra keys, and every method that differs
  // between the two configurations differs only in those extra keys.
  return z.looseObject(shape) as unknown as z.ZodObject<Shape, z.core.$strip>;
}

/** A string that is one of the known values or any later one; editors complete the known values. */
export type OpenEnum<Known extends string> = Known | (string & {});

/** Accepts any string, and types it as the known values plus whatever the service adds later. */
export function openEnum<const Known extends string>(
  _known: readonly Known[],
): z.ZodType<OpenEnum<Known>, OpenEnum<Known>> {
  // Sound: `OpenEnum<Known>` admits exactly the strings that `z.string()` admits.
  return z.string() as unknown as z.ZodType<OpenEnum<Known>, OpenEnum<Known>>;
}

/** A field that the public contract shows but the specification does not promise: it may be missing or null. */
export function observed<Schema extends z.ZodType>(schema: Schema): z.ZodOptional<z.ZodNullable<Schema>> {
  return schema.nullish();
}

import { z } from 'zod';
import { expected } from '../common/validation.ts';

/**
 * The schema of a record. Each record that others hold extends it by an interface of its own: declarations then name
 * the interface, with the words on its fields, where they would else repeat every field without them.
 */
export type RecordSchema<Shape extends z.ZodRawShape> = z.ZodObject<Shape, z.core.$strip>;

/**
 * A record the service sends: unknown fields are kept at run time, while the inferred type stays closed,
 * so a misspelt field does not compile.
 */
export function record<Shape extends z.ZodRawShape>(shape: Shape): RecordSchema<Shape> {
  // Sound: a loose object's output is the stripped output plus extra keys, and every method that differs
  // between the two configurations differs only in those extra keys.
  return z.looseObject(shape) as unknown as RecordSchema<Shape>;
}

/** A string that is one of the known values, which editors complete, or any later one. */
export type OpenEnum<Known extends string> = Known | (string & {});

/** The schema of an open enum. */
export interface OpenEnumSchema<Known extends string> extends z.ZodType<OpenEnum<Known>, OpenEnum<Known>> {}

/** Accepts any string, and types it as the known values plus whatever the service adds later. */
export function openEnum<const Known extends string>(_known: readonly Known[]): OpenEnumSchema<Known> {
  // Sound: `OpenEnum<Known>` admits exactly the strings that `z.string()` admits.
  return z.string() as unknown as OpenEnumSchema<Known>;
}

/** A field that the public contract shows but the specification does not promise: it may be missing or null. */
export function observed<Schema extends z.ZodType>(schema: Schema): z.ZodOptional<z.ZodNullable<Schema>> {
  return schema.nullish();
}

/** A string of `min` to `max` characters. */
export function text(min: number, max: number) {
  const rule = min === 0 ? `at most ${max} characters` : `${min} to ${max} characters`;
  return z
    .string(expected('to be a string'))
    .min(min, { ...expected(`to have ${rule}`), abort: true })
    .max(max, expected(`to have ${rule}`));
}

/** ISO 3166-1 alpha-2 or alpha-3 shape; whether the country exists is the service's to say. */
export const countryCode = z
  .string(expected('to be a string'))
  .regex(/^[A-Za-z]{2,3}$/, expected('to be an ISO 3166-1 alpha-2 or alpha-3 country code'));

import { z } from 'zod';
import { expected } from '../common/validation.ts';

/** The schema of a record without a name of its own. */
export type RecordSchema<Shape extends z.ZodRawShape> = z.ZodObject<Shape, z.core.$strip>;

/** What a record of some fields holds; a named record is an interface that extends it. */
export type RecordOf<Shape extends z.ZodRawShape> = z.output<RecordSchema<Shape>>;

interface NamedInternals<Shape extends z.ZodRawShape, Named extends RecordOf<Shape>>
  extends z.core.$ZodObjectInternals<Shape, z.core.$strip> {
  output: Named;
}
/**
 * The schema of a record with a name: editors, errors and declarations name the interface, where they would else repeat
 * every field.
 */
export interface NamedSchema<Shape extends z.ZodRawShape, Named extends RecordOf<Shape>>
  extends z.ZodObject<Shape, z.core.$strip> {
  _zod: NamedInternals<Shape, Named>;
}

/**
 * A record the service sends: unknown fields are kept at run time, while the inferred type stays closed,
 * so a misspelt field does not compile.
 */
export function record<Shape extends z.ZodRawShape>(shape: Shape): RecordSchema<Shape> {
  // Sound: a loose object's output is the stripped output plus extra keys, and every method that differs
  // between the two configurations differs only in those extra keys.
  return z.looseObject(shape) as unknown as RecordSchema<Shape>;
}

/** `record` with the name of what it holds. */
export function namedRecord<Shape extends z.ZodRawShape, Named extends RecordOf<Shape>>(
  shape: Shape,
): NamedSchema<Shape, Named> {
  // Sound: `Named` is an interface that extends exactly what the record holds and adds nothing.
  return record(shape) as unknown as NamedSchema<Shape, Named>;
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

/** A field that the specification does not promise: it may be missing or null. */
export function nullish<Schema extends z.ZodType>(schema: Schema): z.ZodOptional<z.ZodNullable<Schema>> {
  return schema.nullish();
}

const REQUIRED = new WeakSet<object>();

/**
 * Marks what a record cannot be used without: its id, whose absence rejects a single record, or its list of records,
 * which has to be a list of objects.
 */
export function required<Schema extends z.ZodType>(schema: Schema): Schema {
  REQUIRED.add(schema);
  return schema;
}

/** Tells whether a schema is marked as required. */
export function isRequired(schema: object | undefined): boolean {
  return schema !== undefined && REQUIRED.has(schema);
}

function isTextOrTexts(value: unknown): value is string | string[] {
  return (
    typeof value === 'string' || (Array.isArray(value) && value.every((item) => typeof item === 'string'))
  );
}

/** One text or several; a single check, since a union would report every item of a long list. */
export const textOrTexts = z.custom<string | string[]>(isTextOrTexts);

/** `textOrTexts`, or true or false. */
export const booleanOrTexts = z.custom<boolean | string | string[]>(
  (value) => typeof value === 'boolean' || isTextOrTexts(value),
);

/** An optional field of an input; null, which a row of a database has where nothing is, counts as left out. */
export function optionalInput<Schema extends z.ZodType>(schema: Schema) {
  return schema
    .nullish()
    .transform((value): z.output<Schema> | undefined => value ?? undefined)
    .optional();
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

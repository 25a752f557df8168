import * as z from 'zod';
import { expected, kindOf, quoteValue } from '../common/messages.ts';
import { isJsonObject, MAX_ISSUES, parserOf } from '../common/parsing.ts';

/** The schema of a record whose type has no name. */
export type RecordSchema<Shape extends z.ZodRawShape> = z.ZodObject<Shape, z.core.$strip>;

/** The type of a record. */
export type RecordOf<Shape extends z.ZodRawShape> = z.output<RecordSchema<Shape>>;

interface NamedInternals<Shape extends z.ZodRawShape, Named>
  extends z.core.$ZodObjectInternals<Shape, z.core.$strip> {
  // `Extract` tells TypeScript that `Named` fits `Shape`. A constraint on `Named` would be circular, because the fields of `Named`
  // come from this schema.
  output: Extract<Named, RecordOf<Shape>>;
}
/**
 * The schema of a record whose type is an interface. Editors, errors and declarations then show the interface's name instead
 * of every field.
 */
export interface NamedSchema<Shape extends z.ZodRawShape, Named> extends z.ZodObject<Shape, z.core.$strip> {
  _zod: NamedInternals<Shape, Named>;
}

/** The fields of a named record, for its interface: `interface Tracker extends FieldsOf<typeof trackerSchema> {}`. */
export type FieldsOf<Schema extends { readonly shape: z.ZodRawShape }> = RecordOf<Schema['shape']>;

/**
 * Builds a record's schema. Unknown fields are kept at run time, but are not part of the type, so that a misspelt field does
 * not compile (docs/service.md 2.9).
 */
export function record<Shape extends z.ZodRawShape>(shape: Shape): RecordSchema<Shape> {
  // Safe cast: both types have the same named fields, and the loose one only allows other fields, too.
  return z.looseObject(shape) as unknown as RecordSchema<Shape>;
}

/**
 * Like `record`, for a type that is an interface. It takes the interface and the fields in two steps, because TypeScript
 * infers either all type arguments of a call or none.
 */
export function namedRecord<Named>() {
  return <Shape extends z.ZodRawShape>(shape: Shape): NamedSchema<Shape, Named> =>
    // Safe cast: `Named` is an interface that extends the type of the record and adds nothing.
    record(shape) as unknown as NamedSchema<Shape, Named>;
}

/** Facts about a schema that `z.toJSONSchema` does not return. */
export interface SchemaFacts {
  /** The schema of the items of a list. */
  readonly items?: z.ZodType;
  readonly maxItems?: number;
  /** The values of an open enum that are known today. */
  readonly knownValues?: readonly string[];
}

/** Facts by schema, for `scripts/contract.ts`, which compares the schemas with the contract of the service. */
export const schemaFacts = new WeakMap<z.core.$ZodType, SchemaFacts>();

export function withFacts<Schema extends z.ZodType>(schema: Schema, facts: SchemaFacts): Schema {
  schemaFacts.set(schema, facts);
  return schema;
}

/** One of the known strings, which editors complete, or any other string. */
export type OpenEnum<Known extends string> = Known | (string & {});

/** The schema of an open enum. */
export interface OpenEnumSchema<Known extends string> extends z.ZodType<OpenEnum<Known>, OpenEnum<Known>> {}

/** Accepts any string, because the service may add values (docs/service.md 2.9). */
export function openEnum<const Known extends string>(knownValues: readonly Known[]): OpenEnumSchema<Known> {
  // Safe cast: `OpenEnum<Known>` admits exactly the strings that `z.string()` admits.
  return withFacts(z.string(), { knownValues }) as unknown as OpenEnumSchema<Known>;
}

/** A field that may be missing or null, because the service does not promise it. */
export function nullish<Schema extends z.ZodType>(schema: Schema): z.ZodOptional<z.ZodNullable<Schema>> {
  return schema.nullish();
}

/**
 * A list of records. Unlike `z.array`, it stops after 20 issues, because the issues of a million items would fill the memory.
 * If `hasKind` returns false for an item, only the first such item is reported. Without this rule, 20 issues of earlier items could
 * hide it.
 *
 * @param hasKind - tells whether an item can be such a record at all
 */
export function listOf<Item extends z.ZodType>(
  item: Item,
  hasKind: (value: unknown) => boolean = isJsonObject,
): z.ZodType<z.output<Item>[]> {
  const list = z.unknown().transform((list, context) => {
    if (!Array.isArray(list)) {
      context.addIssue({ code: 'invalid_type', expected: 'array', input: list });
      return z.NEVER;
    }
    const parse = parserOf(item);
    const records: z.output<Item>[] = [];
    const strayIndex = list.findIndex((value) => !hasKind(value));
    for (let index = Math.max(strayIndex, 0); index < list.length; index += 1) {
      const result = parse(list[index], { reportInput: true });
      if (result.success) records.push(result.data);
      // The message is dropped, because the outer parse writes a message with the whole path.
      for (const { message: _, ...issue } of result.error?.issues ?? [])
        context.addIssue({ ...issue, path: [index, ...issue.path] });
      if (index === strayIndex || context.issues.length > MAX_ISSUES) break;
    }
    return records;
  });
  return withFacts(list, { items: item });
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isTextOrTexts(value: unknown): value is string | string[] {
  return typeof value === 'string' || isTexts(value);
}

/** A list of open enums. It is one check, because `z.array` would report every item of a long list. */
export function openEnums<const Known extends string>(known: readonly Known[]) {
  const list = z.custom<OpenEnum<Known>[]>(isTexts, expected('to be an array of strings'));
  return withFacts(list, { items: openEnum(known) });
}

/** One text or several. It is one check, because a union would report every item of a long list. */
export const textOrTexts = z.custom<string | string[]>(
  isTextOrTexts,
  expected('to be a string or an array of strings'),
);

/** `textOrTexts`, or true or false. */
export const booleanOrTexts = z.custom<boolean | string | string[]>(
  (value) => typeof value === 'boolean' || isTextOrTexts(value),
  expected('to be true, false, a string or an array of strings'),
);

/** An optional field of an input. Null counts as left out, because database rows have null in empty columns. */
export function optionalInput<Schema extends z.ZodType>(schema: Schema) {
  return schema
    .nullish()
    .transform((value): z.output<Schema> | undefined => value ?? undefined)
    .optional();
}

/**
 * A string of `min` to `max` characters.
 *
 * @param got - describes a wrong value in the message; default: only the kind of the value
 */
export function text(min: number, max: number, got = kindOf) {
  const rule = min === 0 ? `at most ${max} characters` : `${min} to ${max} characters`;
  return z
    .string(expected('to be a string', got))
    .min(min, { ...expected(`to have ${rule}`, got), abort: true })
    .max(max, expected(`to have ${rule}`, got));
}

/** Names the first character that does not match. Characters outside ASCII can be invisible or look like an allowed one. */
function nameFirstOther(value: string, allowed: RegExp): string {
  const characters = [...value];
  const index = characters.findIndex((character) => !allowed.test(character));
  const other = characters[index] ?? '';
  const code = `U+${(other.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return `${/^[ -~]$/.test(other) ? quoteValue(other) : code} at position ${index + 1}`;
}

/**
 * Checks that a text contains only allowed characters. The message names the first other character and its position.
 *
 * @param allowed - the allowed characters, as in a character class of a regular expression
 * @param names - the allowed characters in words
 * @param got - describes a wrong value in the message; default: only the kind of the value
 */
export function onlyCharacters(allowed: string, names: string, got = kindOf): z.core.$ZodCheck<string> {
  const one = new RegExp(`^[${allowed}]$`);
  const describe = (value: unknown) => `${nameFirstOther(String(value), one)} of ${got(value)}`;
  return z.regex(new RegExp(`^[${allowed}]*$`), expected(`to contain only ${names}`, describe));
}

/** True for every value but undefined. An object has a value only if one of its fields has one. */
export function hasValue(value: unknown): boolean {
  return isJsonObject(value) ? Object.values(value).some(hasValue) : value !== undefined;
}

/**
 * The shape of an ISO 3166-1 code; the service decides whether the country exists. It is turned into upper case
 * (docs/service.md 3.4).
 */
export const countryCode = z
  .string(expected('to be a string', quoteValue))
  .regex(
    /^[A-Za-z]{2,3}$/,
    expected('to be a country code of two or three letters, such as DE or DEU', quoteValue),
  )
  .toUpperCase();

// Reads JSON Schemas into a form in which two of them can be compared.
import * as z from 'zod';
import { isJsonObject } from '../../src/common/parsing.ts';
import { schemaFacts } from '../../src/schemas/record.ts';

/** The rules that are compared as they are. Lengths of texts are read from patterns, too. */
const LIMITS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum'] as const;

/** The rules of a value, as texts; a rule that allows everything is left out. */
export type Rules = Partial<Record<(typeof LIMITS)[number] | 'pattern', string>>;

/** The rules of a schema for a value. */
export interface Shape {
  /** `any`: nothing is known, so nothing is compared. */
  readonly kind: 'any' | 'value' | 'array' | 'object';
  readonly rules: Rules;
  /** The values of an enum. */
  readonly values: ReadonlySet<string>;
  readonly fields: ReadonlyMap<string, Shape>;
  readonly items?: Shape | undefined;
}

const NO_SHAPE: Shape = { kind: 'any', rules: {}, values: new Set(), fields: new Map() };
const KINDS = ['object', 'array', 'value', 'any'] as const;

/** A pattern that only names the allowed characters and perhaps the length, such as `^[A-Z]{2,3}$`. */
const CHARACTERS = /^\^(\[(?:\\.|[^\]\\])+\])(?:([*+])|\{(\d+)(,?)(\d*)\})?\$$/;
const RANGES = [
  ['0-9', '0123456789'],
  ['A-Z', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'],
  ['a-z', 'abcdefghijklmnopqrstuvwxyz'],
] as const;
const ASCII = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index));

/** Two patterns with the same characters in another order become the same text. */
function sortCharacters(characterClass: string): string {
  const allowed = new RegExp(characterClass);
  const characters = ASCII.filter((character) => allowed.test(character)).join('');
  return `only ${RANGES.reduce((text, [range, all]) => text.replace(all, range), characters)}`;
}

function readPattern(pattern: string): Rules {
  const [, characters, repeat, least, comma, most] = CHARACTERS.exec(pattern) ?? [];
  if (characters === undefined) return { pattern };
  const min = least ?? (repeat === '*' ? '0' : '1');
  const max = repeat === undefined ? (comma === ',' ? most : (least ?? '1')) : '';
  return {
    pattern: sortCharacters(characters),
    ...(min !== '0' && { minLength: min }),
    ...(max && { maxLength: max }),
  };
}

function readRules(schema: Readonly<Record<string, unknown>>): Rules {
  const { pattern } = schema;
  const limits = LIMITS.flatMap((name) => {
    const limit = schema[name];
    const isLimit = typeof limit === 'number' && limit !== 0 && Math.abs(limit) < Number.MAX_SAFE_INTEGER;
    return isLimit ? [[name, String(limit)] as const] : [];
  });
  return { ...(typeof pattern === 'string' && readPattern(pattern)), ...Object.fromEntries(limits) };
}

function readValues({ enum: values, const: only }: Readonly<Record<string, unknown>>): Set<string> {
  const all = Array.isArray(values) ? values : only === undefined ? [] : [only];
  return new Set(all.filter((value) => value !== null).map(String));
}

/** Joins what several schemas say about one value, for `allOf`, `anyOf` and `oneOf` alike. */
function join(shapes: readonly Shape[]): Shape {
  const names = new Set(shapes.flatMap(({ fields }) => [...fields.keys()]));
  const items = shapes.flatMap((shape) => shape.items ?? []);
  return {
    kind: KINDS.find((kind) => shapes.some((shape) => shape.kind === kind)) ?? 'any',
    rules: Object.assign({}, ...shapes.map(({ rules }) => rules).reverse()),
    values: new Set(shapes.flatMap(({ values }) => [...values])),
    fields: new Map(
      [...names].map((name) => [name, join(shapes.flatMap(({ fields }) => fields.get(name) ?? []))]),
    ),
    items: items.length > 0 ? join(items) : undefined,
  };
}

function readKind({ type, properties, items, enum: values, const: only }: Record<string, unknown>) {
  if (isJsonObject(properties)) return 'object';
  if (isJsonObject(items)) return 'array';
  const types = [type].flat().filter((name) => name !== undefined && name !== 'object' && name !== 'array');
  return types.length > 0 || values !== undefined || only !== undefined ? 'value' : 'any';
}

/**
 * Reads a JSON Schema, whose references are resolved.
 *
 * @param ancestors - the schemas around it; a schema inside of itself is read once
 * @returns undefined for a schema that no value, or only null, can match
 */
export function readShape(schema: unknown, ancestors: readonly unknown[] = []): Shape | undefined {
  if (schema === false) return undefined;
  if (!isJsonObject(schema) || ancestors.includes(schema)) return NO_SHAPE;
  const { properties, items, not, allOf, anyOf, oneOf } = schema;
  if (schema['type'] === 'null' || (isJsonObject(not) && Object.keys(not).length === 0)) return undefined;
  const below = [...ancestors, schema];
  const fields = Object.entries(properties ?? {}).flatMap(([name, field]) => {
    const shape = readShape(field, below);
    return shape === undefined ? [] : [[name, shape] as const];
  });
  const own: Shape = {
    kind: readKind(schema),
    rules: readRules(schema),
    values: readValues(schema),
    fields: new Map(fields),
    items: items === undefined ? undefined : readShape(items, below),
  };
  const branches = [allOf, anyOf, oneOf].filter(Array.isArray).flat();
  const others = branches.map((branch) => readShape(branch, below)).filter((shape) => shape !== undefined);
  const isNothing = branches.length > 0 && others.length === 0 && own.kind === 'any';
  return isNothing ? undefined : join([own, ...others]);
}

/** Turns a schema of this package into a JSON Schema. */
export function toJsonSchema(schema: z.core.$ZodType): Record<string, unknown> {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ zodSchema, jsonSchema }) {
      const { items, maxItems, knownValues } = schemaFacts.get(zodSchema) ?? {};
      // The items of a bulk request are checked after their number, in a second step.
      const checked = zodSchema instanceof z.ZodPipe ? zodSchema.def.out : undefined;
      const itemSchema = checked instanceof z.ZodArray ? checked.element : items;
      Object.assign(
        jsonSchema,
        itemSchema && { type: 'array', items: toJsonSchema(itemSchema) },
        maxItems && { maxItems },
        knownValues && { enum: [...knownValues] },
      );
    },
  });
}

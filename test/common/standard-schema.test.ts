import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { z as z3 } from 'zod/v3';
import {
  isStandardSchema,
  type StandardSchemaOutput,
  validateWithStandardSchema,
} from '../../src/common/validation.ts';

const SCHEMAS = [
  ['zod 4', z.object({ items: z.array(z.object({ id: z.string() })) })],
  ['zod 3', z3.object({ items: z3.array(z3.object({ id: z3.string() })) })],
  ['valibot', v.object({ items: v.array(v.object({ id: v.string() })) })],
  ['arktype', type({ items: type({ id: 'string' }).array() })],
] as const;

describe.each(SCHEMAS)('a schema of %s', (_library, schema) => {
  test('a value that keeps it → the value; one that breaks it → an issue with path and message', async () => {
    expect(isStandardSchema(schema)).toBe(true);
    const value = { items: [{ id: 'a' }] };
    expect(await validateWithStandardSchema(schema, value)).toEqual({ value });
    const result = await validateWithStandardSchema(schema, { items: [{ id: 'a' }, { id: 5 }] });
    const message = expect.stringMatching(/string/i);
    expect(result).toEqual({ issues: [{ path: ['items', 1, 'id'], code: 'invalid_value', message }] });
  });
});

test.each([
  undefined,
  null,
  5,
  'text',
  {},
  { parse: () => 1 },
  { '~standard': 1 },
  { '~standard': {} },
  () => {},
])('%j → no Standard Schema', (value) => {
  expect(isStandardSchema(value)).toBe(false);
});

test('an asynchronous schema → is waited for', async () => {
  const exists = z.string().refine(async (id) => id === 'known', 'Expected a known id');
  expect(await validateWithStandardSchema(exists, 'known')).toEqual({ value: 'known' });
  expect(await validateWithStandardSchema(exists, 'other')).toEqual({
    issues: [{ path: [], code: 'invalid_value', message: 'Expected a known id' }],
  });
});

test('a schema that transforms → its output, also as a type', async () => {
  const length = v.pipe(
    v.string(),
    v.transform((text) => text.length),
  );
  expect(await validateWithStandardSchema(length, 'four')).toEqual({ value: 4 });
  expectTypeOf<StandardSchemaOutput<typeof length>>().toEqualTypeOf<number>();
});

test('a hundred issues → the first 20', async () => {
  const result = await validateWithStandardSchema(z.array(z.string()), Array(100).fill(5));
  expect(result).toMatchObject({ issues: { length: 20 } });
});

test('a symbol in a path → its text', async () => {
  const key = Symbol('secret');
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'own',
      validate: () => ({ issues: [{ message: 'no', path: [key] }] }),
    },
  } as const;
  expect(await validateWithStandardSchema(schema, 1)).toMatchObject({
    issues: [{ path: ['Symbol(secret)'] }],
  });
});

import type { z } from 'zod';
import { errorMap } from '../../src/common/messages.ts';
import { toValidationIssues, type ValidationIssue } from '../../src/common/parsing.ts';

/** The issues of a value, as a method of the client would report them; empty when it is valid. */
export function readIssues(schema: z.ZodType, value: unknown, rootName = 'input'): ValidationIssue[] {
  const result = schema.safeParse(value, { error: errorMap(rootName) });
  return result.success ? [] : toValidationIssues(result.error);
}

/** The messages of a value's issues. */
export function readMessages(schema: z.ZodType, value: unknown, rootName = 'input'): string[] {
  return readIssues(schema, value, rootName).map((issue) => issue.message);
}

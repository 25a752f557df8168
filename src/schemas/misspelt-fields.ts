import { z } from 'zod';
import { distance } from '../common/option-checks.ts';
import { formatPath, type ValidationIssue } from '../common/validation.ts';

/** From this length on two slips of the keys still leave no doubt. */
const LONG_NAME = 8;

/** The name without what languages write differently: `client_tracker_ID` as `clienttrackerid`. */
function bare(name: string): string {
  return name.replace(/[\W_]/g, '').toLowerCase();
}

function isSlipOf(given: string, known: string): boolean {
  const [one, other] = [bare(given), bare(known)];
  const most = one.length >= LONG_NAME ? 2 : 1;
  return Math.abs(one.length - other.length) <= most && distance(one, other) <= most;
}

/** The record or list behind what makes a field optional. */
function innermost(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable)
    return innermost(schema.def.innerType);
  return schema instanceof z.ZodPipe ? innermost(schema.def.in) : schema;
}

/**
 * The fields of an input that are misspelt: unknown, and close to a known one that is not given. Any other unknown field is
 * legal, since the service may know it.
 */
export function misspeltFields(
  schema: unknown,
  input: unknown,
  path: readonly (string | number)[] = [],
): ValidationIssue[] {
  const known = innermost(schema);
  if (known instanceof z.ZodArray && Array.isArray(input))
    return input.flatMap((item, index) => misspeltFields(known.element, item, [...path, index]));
  if (!(known instanceof z.ZodObject) || typeof input !== 'object' || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const at = [...path, name];
    if (Object.hasOwn(known.shape, name)) return misspeltFields(known.shape[name], value, at);
    const meant = Object.keys(known.shape).find((one) => !(one in input) && isSlipOf(name, one));
    if (meant === undefined) return [];
    const message = `Expected a known field, got \`${formatPath(at)}\`; did you mean \`${formatPath([...path, meant])}\`?`;
    return [{ path: at, code: 'unrecognized_keys', message }];
  });
}

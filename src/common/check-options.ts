import * as z from 'zod';
import { ConfigurationError } from '../errors.ts';
import { compileWhenHot, describeBrokenRule, errorMap, kindOrNumber } from './validation.ts';

/**
 * @param name - precedes the names of options in messages, as in `hooks.onRequest`; default: none
 * @param maskKey - masks the client's API key in the message
 * @throws ConfigurationError for the first option that breaks its rule
 */
export function checkOptions<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  name?: string,
  maskKey: (text: string) => string = (text) => text,
): z.output<Schema> {
  const result = compileWhenHot(schema).safeParse(options, { error: errorMap('options') });
  if (result.success) return result.data;
  // Check the options again as a field called `name`, so that every message shows the whole path.
  const named = name === undefined ? undefined : z.object({ [name]: schema });
  const { issues } = named?.safeParse({ [name ?? '']: options }, { error: errorMap() }).error ?? result.error;
  // Report an unknown option first: it may be a misspelling that explains why another one is missing.
  const first = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  throw new ConfigurationError(maskKey(first?.message ?? `\`${name ?? 'options'}\` is not valid`));
}

/** Rejects an option that is checked by hand; `rule` is the text after "to be" or "to return" in the message. */
export function refuseOption(
  name: string,
  rule: string,
  value: unknown,
  got = kindOrNumber,
  verb: 'be' | 'return' = 'be',
): never {
  throw new ConfigurationError(
    describeBrokenRule({ path: [], input: value }, `to ${verb} ${rule}`, got, name),
  );
}

/** Rejects a value that is not an object; called where a field is read before all options are checked. */
export function checkIsObject(name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) refuseOption(name, 'an object', value);
}

export function checkOneOf<Allowed extends string>(
  name: string,
  value: unknown,
  allowed: readonly Allowed[],
): Allowed {
  return checkOptions(z.enum(allowed), value, name);
}

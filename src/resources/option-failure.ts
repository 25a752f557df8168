import { ConfigurationError } from '../errors.ts';
import { kindOf } from '../validation.ts';

/** Refuses an option: `Expected \`name\` to be rule, got value`; of other values than numbers only the kind is told. */
export function refuseOption(name: string, rule: string, value: unknown): never {
  const got = typeof value === 'number' ? String(value) : kindOf(value);
  throw new ConfigurationError(`Expected \`${name}\` to be ${rule}, got ${got}`);
}

import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

/** Checks a callback among the options. */
export function checkFunction(name: string, value: unknown): void {
  if (value === undefined || typeof value === 'function') return;
  throw new ConfigurationError(`Expected \`${name}\` to be a function, got ${kindOf(value)}`);
}

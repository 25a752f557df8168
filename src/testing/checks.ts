import { refuseOption } from '../common/option-checks.ts';

/** Checks a switch, whose text would count as true. */
export function checkBoolean(name: string, value: unknown): boolean {
  return typeof value === 'boolean' ? value : refuseOption(name, 'a boolean', value);
}

/** Checks a seed; an object would be the same seed as any other object. */
export function checkSeed(value: unknown): string | number {
  return typeof value === 'string' || typeof value === 'number'
    ? value
    : refuseOption('seed', 'a string or a number', value);
}

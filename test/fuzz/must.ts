import { inspect } from 'node:util';

/** Fails the run unless `isSo`. */
export function must(isSo: boolean, broken: () => string): void {
  if (!isSo) throw new Error(broken());
}

/** Returns all text that a log may print of a value. */
export function printed(value: unknown): string {
  const shown = inspect(value, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: 500 });
  const said = value instanceof Error ? `${value}${value.stack}` : '';
  return shown + said + toJson(value);
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '';
  }
}

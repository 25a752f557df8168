import { inspect } from 'node:util';

/** Fails the run; the message is all that is printed. */
export function must(isSo: boolean, broken: () => string): void {
  if (!isSo) throw new Error(broken());
}

/** Every text of a value that a log may print. */
export function printed(value: unknown): string {
  const shown = inspect(value, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: 500 });
  const said = value instanceof Error ? `${value}${value.stack}` : '';
  return shown + said + jsonOf(value);
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '';
  }
}

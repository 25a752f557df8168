/** Shared by every copy of this package in a process, so errors of the ESM and the CommonJS build know each other. */
export const ERROR_BRAND = Symbol.for('tracking-client.error');

/** The kinds an error of any copy of this package is, most specific first; empty for everything else. */
export function brandedKinds(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null || !(ERROR_BRAND in value)) return [];
  const kinds = value[ERROR_BRAND];
  return Array.isArray(kinds) ? kinds : [];
}

/** The kind that a class itself declares. */
export function ownKind(errorClass: unknown): string | undefined {
  // Own property only: a user's subclass inherits `kind`, yet must not match its parent's instances.
  if (typeof errorClass !== 'function' || !Object.hasOwn(errorClass, 'kind')) return undefined;
  const { kind } = errorClass as { kind?: unknown }; // `hasOwn` above proves the property.
  return typeof kind === 'string' ? kind : undefined;
}

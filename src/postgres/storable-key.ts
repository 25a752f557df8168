import { createHash } from 'node:crypto';

/**
 * The key as it is stored. PostgreSQL takes no NUL in a text and no long text in an index, and a driver sends every broken surrogate
 * as the same character, so whatever is not short plain ASCII is stored as its SHA-256. Different keys stay different.
 */
export function storableKey(key: string): string {
  if (/^[\x20-\x7e]{0,255}$/.test(key) && !key.startsWith('sha256:')) return key;
  return `sha256:${createHash('sha256').update(key, 'utf16le').digest('hex')}`;
}

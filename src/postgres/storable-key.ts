import { hashedKey, looksHashed } from '../webhooks/hashed-key.ts';

/**
 * The key as it is stored. PostgreSQL takes no NUL in a text and no long text in an index, and a driver sends every broken surrogate
 * as the same character, so whatever is not short plain ASCII is stored as its SHA-256. Different keys stay different.
 */
export function storableKey(key: string): string {
  return /^[\x20-\x7e]{0,255}$/.test(key) && !looksHashed(key) ? key : hashedKey(key);
}

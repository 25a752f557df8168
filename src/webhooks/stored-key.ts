import { createHash } from 'node:crypto';

const HASHED = 'sha256:';
/** PostgreSQL allows no NUL in a text and no long text in an index, and drivers change half of a surrogate pair. */
const STORABLE = /^[\x20-\x7e]{0,300}$/;

/**
 * Builds the text under which a store remembers a key: the key itself if it is plain ASCII of at most 300 bytes, else its SHA-256.
 * The hash is that of UTF-16, because UTF-8 turns all halves of surrogate pairs into the same character.
 */
export function toStoredKey(key: string): string {
  // A key that looks like a hash could be mistaken for the hash of another key, so it is hashed, too.
  if (STORABLE.test(key) && !key.startsWith(HASHED)) return key;
  return `${HASHED}${createHash('sha256').update(key, 'utf16le').digest('hex')}`;
}

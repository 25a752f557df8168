import { createHash } from 'node:crypto';

const PREFIX = 'sha256:';

/**
 * A key by its SHA-256, for what a store cannot hold as it is: drivers send every broken surrogate as the same character,
 * which would make two keys one.
 */
export function hashedKey(key: string): string {
  return `${PREFIX}${createHash('sha256').update(key, 'utf16le').digest('hex')}`;
}

/** Such a key must be hashed itself, or it could be taken for the hash of another one. */
export function looksHashed(key: string): boolean {
  return key.startsWith(PREFIX);
}

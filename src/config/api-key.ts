import { createHash } from 'node:crypto';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

/** Gives the key for one attempt. */
export type KeySource = () => string | Promise<string>;

function checkKey(value: unknown): string {
  const key = typeof value === 'string' ? value.trim() : undefined;
  if (key === undefined || key === '') {
    throw new ConfigurationError(
      `Expected \`apiKey\` to be a non-empty string, got ${kindOf(value)}; pass it, or set TRACKING_API_KEY`,
    );
  }
  // The kind only: the value must never reach a message.
  if (!/^[\x20-\x7e]+$/.test(key) || /["'`\\]/.test(key)) {
    throw new ConfigurationError(
      'Expected `apiKey` to hold visible ASCII characters without quotes and backslashes, got others among them',
    );
  }
  return key;
}

/** A key that does not change is checked at once; a function is asked before every attempt. */
export function keySource(apiKey: unknown): KeySource {
  if (typeof apiKey !== 'function') {
    const key = checkKey(apiKey);
    return () => key;
  }
  return async () => {
    let key: unknown;
    try {
      key = await apiKey();
    } catch (cause) {
      throw new ConfigurationError('Expected the `apiKey` function to give a key, got an error', { cause });
    }
    return checkKey(key);
  };
}

/**
 * Names the account for limiters: a hash of the key, never the key. A key that comes from a function can change while
 * the account stays, so all such clients that share a limiter count as one account.
 */
export function accountOf(apiKey: unknown): string {
  if (typeof apiKey !== 'string') return 'dynamic';
  return createHash('sha256').update(apiKey.trim()).digest('hex');
}

import { showsSecret } from './shows-secret.ts';

const MASK = '[redacted]';
/** Deeper than any honest answer; what lies below is masked whole, so a hostile one can't exhaust the stack. */
const DEEPEST_VALUE = 100;
const LONGEST_CAUSE_CHAIN = 10;

/** Replaces every occurrence of a secret in a text. */
export function redactText(text: string, secret: string): string {
  return secret !== '' && text.includes(secret) ? text.replaceAll(secret, MASK) : text;
}

/** A copy of a JSON value that does not show the secret in any string or name. */
export function redactValue(value: unknown, secret: string, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value, secret);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEEPEST_VALUE) return MASK;
  const redact = (inner: unknown) => redactValue(inner, secret, depth + 1);
  if (Array.isArray(value)) return value.map(redact);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [redactText(name, secret), redact(inner)]),
  );
}

/** Replaces a secret in header values; the headers themselves when there is none. */
export function redactHeaders(headers: Headers, secret: string): Headers {
  const entries = [...headers];
  if (!entries.some(([, value]) => value.includes(secret))) return headers;
  // Appended, not set: cookies come as several entries of one name.
  const clean = new Headers();
  for (const [name, value] of entries) clean.append(name, redactText(value, secret));
  return clean;
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    // An object without a prototype, or a text beyond what a string can hold.
    return `a value of type ${typeof value}`;
  }
}

/**
 * A cause that may be kept on an error: the original when it surely does not show the secret anywhere a log would,
 * else a copy with name, message, code and stack, cleaned.
 */
export function redactCause(cause: unknown, secret: string, chain = 0): unknown {
  if (!showsSecret(cause, secret)) return cause;
  if (!(cause instanceof Error)) return redactText(textOf(cause), secret);
  const clean = new Error(redactText(cause.message, secret));
  clean.name = redactText(cause.name, secret);
  if (cause.stack !== undefined) clean.stack = redactText(cause.stack, secret);
  if ('code' in cause) Object.assign(clean, { code: redactValue(cause.code, secret) });
  if (cause.cause !== undefined && chain < LONGEST_CAUSE_CHAIN) {
    clean.cause = redactCause(cause.cause, secret, chain + 1);
  }
  return clean;
}

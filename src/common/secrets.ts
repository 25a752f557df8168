const MASK = '[redacted]';

/** Real responses are nested less deeply. Deeper values are masked whole, so that no hostile response exhausts the stack. */
const MAX_DEPTH = 100;

/** `fetch` wraps a failure two or three times; causes further down help no reader. */
export const MAX_CAUSES = 5;
const MAX_CAUSE_FRAMES = 5;

/** A shorter secret can be part of an ordinary word by chance, so it is masked only where it is a whole word. */
const MIN_UNMISTAKABLE_LENGTH = 8;

/** Masks the secret, also where all or some of its characters are percent-encoded. */
export function maskText(text: string, secret: string): string {
  if (secret === '' || !(text.includes(secret) || text.includes('%'))) return text;
  return text.replace(buildPattern(secret), MASK);
}

function buildPattern(secret: string): RegExp {
  const pattern = Array.from(secret, (character) => {
    const hex = character.charCodeAt(0).toString(16).padStart(2, '0');
    const eitherCase = hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
    // A form encodes a space as `+`.
    const inForm = character === ' ' ? '|\\+' : '';
    return `(?:\\u${hex.padStart(4, '0')}|%${eitherCase}${inForm})`;
  }).join('');
  if (secret.length >= MIN_UNMISTAKABLE_LENGTH) return new RegExp(pattern, 'g');
  const wordStart = '(?:(?<![\\w-])|(?<=%[\\da-fA-F]{2}))';
  return new RegExp(`${wordStart}${pattern}(?![\\w-])`, 'g');
}

/** Copies a JSON value with the secret masked in every string and field name. */
export function maskValue(value: unknown, secret: string, depth = 0): unknown {
  if (typeof value === 'string') return maskText(value, secret);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return MASK;
  if (Array.isArray(value)) return value.map((item) => maskValue(item, secret, depth + 1));
  const fields = Object.entries(value);
  return Object.fromEntries(
    fields.map(([name, field]) => [maskText(name, secret), maskValue(field, secret, depth + 1)]),
  );
}

/** Like `maskValue`, for JSON parsed from `text`. If the text has neither the secret nor any escape, the value is not copied. */
export function maskParsed(value: unknown, text: string, secret: string): unknown {
  return text.includes(secret) || /\\[u/]|%/.test(text) ? maskValue(value, secret) : value;
}

export function maskHeaders(headers: Headers, secret: string): Headers {
  const masked = new Headers();
  for (const [name, value] of headers) {
    try {
      // `append` instead of `set`, because a response can have several headers with the name `set-cookie`.
      masked.append(name, maskText(value, secret));
    } catch {
      // `fetch` accepts names such as `bad name` from a server, but `Headers` refuses them, so they are left out.
    }
  }
  return masked;
}

/** Copies the parts of a foreign error and its causes that are safe to log; the original may hold a request or a socket. */
export function maskCause(cause: unknown, secret: string, remaining = MAX_CAUSES): unknown {
  if (!(cause instanceof Error)) return maskText(formatNonError(cause), secret);
  const copy = new Error(maskText(cause.message, secret));
  copy.name = maskText(cause.name, secret);
  // An own enumerable `stack` would be printed twice, so this property is not enumerable.
  Object.defineProperty(copy, 'stack', {
    value: maskText(shortenStack(cause.stack), secret),
    configurable: true,
  });
  if ('code' in cause) Object.assign(copy, { code: maskValue(cause.code, secret) });
  if (cause.cause !== undefined && remaining > 1) copy.cause = maskCause(cause.cause, secret, remaining - 1);
  return copy;
}

function shortenStack(stack = ''): string {
  const lines = stack.split('\n');
  const firstFrame = lines.findIndex((line) => /^\s+at /.test(line));
  return firstFrame < 0 ? stack : lines.slice(0, firstFrame + MAX_CAUSE_FRAMES).join('\n');
}

function formatNonError(value: unknown): string {
  try {
    return String(value);
  } catch {
    // An object without a prototype cannot be converted to a string.
    return `a value of type ${typeof value}`;
  }
}

/** Line breaks, terminal codes, and the characters that reverse the direction of text: they would forge lines in a log. */
const UNPRINTABLE = /[\s\p{Cc}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]+/gu;

/** Makes one printable line of a text. The caller must mask the text before, because the cut could leave half of a secret. */
export function toPrintableLine(text: string, maxLength: number): string {
  const line = text
    // Cut before the search, so that a body of 64 MiB is not searched. `trim` may shorten the text, so keep four times the length.
    .slice(0, maxLength * 4)
    .replace(UNPRINTABLE, ' ')
    .trim();
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}

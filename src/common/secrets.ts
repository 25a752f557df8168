const MASK = '[redacted]';

/** Real responses are nested less deeply. Deeper values are masked whole, so that no hostile response exhausts the stack. */
const MAX_DEPTH = 100;

/** `fetch` wraps a failure two or three times; causes further down help no reader. */
export const MAX_CAUSES = 5;
const MAX_CAUSE_FRAMES = 5;

/** A shorter secret can be part of an ordinary word by chance, so it is masked only where it is a whole word. */
const MIN_UNMISTAKABLE_LENGTH = 8;

/**
 * Masks the secret, also where some of its characters are percent-encoded, escaped as in JSON, or written as HTML entities. The
 * encodings can be nested.
 */
export function maskText(text: string, secret: string): string {
  if (secret === '' || text.length < secret.length) return text;
  const masked = text.includes(secret) ? text.replace(buildPattern(secret), () => MASK) : text;
  if (!ESCAPE.test(masked)) return masked;
  // No encoding contains white space, so long texts are decoded word by word.
  if (/\s/.test(secret)) return maskEncoded(masked, secret);
  return masked.replace(/\S+/g, (word) => (ESCAPE.test(word) ? maskEncoded(word, secret) : word));
}

const ESCAPE = /[%\\&]/;

/** Each alternative is one encoding of a character. */
const ENCODED =
  /%(?<percent>[\da-f]{2})|\\u(?<json>[\da-f]{4})|\\(?<escaped>["'\\/])|&#(?<decimal>\d{1,7});|&#x(?<hex>[\da-f]{1,6});|&(?<name>\w{2,6});/gi;

/** HTML has names for these characters. */
const NAMED_CHARACTERS: ReadonlyMap<string | undefined, string> = new Map(
  (
    'excl! quot" num# dollar$ percnt% amp& apos\' lpar( rpar) ast* plus+ comma, period. sol/ colon: semi; lt< equals= gt> ' +
    'quest? commat@ lsqb[ lbrack[ bsol\\ rsqb] rbrack] Hat^ lowbar_ grave` lcub{ lbrace{ verbar| vert| rcub} rbrace}'
  )
    .split(' ')
    .map((entry) => [entry.slice(0, -1), entry.slice(-1)]),
);

/** A text may be encoded several times, as JSON in JSON is. */
const MAX_DECODINGS = 8;

interface Decoded {
  readonly text: string;
  /** The position of each character in the original text. The last entry is the length of the original text. */
  readonly positions: readonly number[];
}

function decodeCharacter({
  percent,
  json,
  escaped,
  decimal,
  hex = percent ?? json,
  name,
}: Partial<Record<string, string>>): string | undefined {
  if (escaped !== undefined) return escaped;
  if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
  return decimal === undefined ? NAMED_CHARACTERS.get(name) : String.fromCharCode(Number(decimal));
}

/** Decodes each encoded character once. */
function decode({ text, positions }: Decoded): Decoded {
  let decoded = '';
  const decodedPositions: number[] = [];
  let end = 0;
  const copyUntil = (start: number) => {
    decoded += text.slice(end, start);
    for (let index = end; index < start; index += 1) decodedPositions.push(positions[index] ?? 0);
  };
  for (const match of text.matchAll(ENCODED)) {
    const character = decodeCharacter(match.groups ?? {});
    if (character === undefined) continue;
    copyUntil(match.index);
    decoded += character;
    decodedPositions.push(positions[match.index] ?? 0);
    end = match.index + match[0].length;
  }
  copyUntil(text.length);
  decodedPositions.push(positions[text.length] ?? 0);
  return { text: decoded, positions: decodedPositions };
}

/** Decodes the text several times, and masks each part that is the secret when it is decoded. */
function maskEncoded(original: string, secret: string): string {
  const found: { readonly start: number; readonly end: number }[] = [];
  // A form encodes a space as `+`.
  const unform = (text: string) => (secret.includes(' ') ? text.replaceAll('+', ' ') : text);
  const pattern = buildPattern(unform(secret));
  let current: Decoded = {
    text: original,
    positions: Array.from({ length: original.length + 1 }, (_, i) => i),
  };
  for (let round = 0; round < MAX_DECODINGS; round += 1) {
    const next = decode(current);
    if (next.text === current.text && round > 0) break;
    current = next;
    for (const { index, 0: match } of unform(current.text).matchAll(pattern))
      found.push({
        start: current.positions[index] ?? 0,
        end: current.positions[index + match.length] ?? original.length,
      });
  }
  let masked = '';
  let position = 0;
  for (const { start, end } of found.sort((a, b) => a.start - b.start)) {
    if (start >= position) masked += original.slice(position, start) + MASK;
    position = Math.max(position, end);
  }
  return masked + original.slice(position);
}

function buildPattern(secret: string): RegExp {
  const escaped = Array.from(secret, (character) =>
    character.replace(/[\\^$.*+?()[\]{}|/]/, String.raw`\$&`),
  ).join('');
  if (secret.length >= MIN_UNMISTAKABLE_LENGTH) return new RegExp(escaped, 'g');
  return new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`, 'g');
}

/** A shorter part of a secret tells too little to be masked. */
const MIN_PART_LENGTH = 4;

/** Masks the beginning of the secret at the end of a text that was cut. */
export function maskEnd(text: string, secret: string): string {
  for (let length = secret.length - 1; length >= MIN_PART_LENGTH; length -= 1) {
    const part = secret.slice(0, length);
    if (text.endsWith(part)) return text.slice(0, -length) + MASK;
  }
  return text;
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
  return text.includes(secret) || ESCAPE.test(text) ? maskValue(value, secret) : value;
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

/** Copies the parts of a foreign error and its causes that are safe to log; the original may contain a request or a socket. */
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

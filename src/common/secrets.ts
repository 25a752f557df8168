import { MAX_CAUSES, readError } from './foreign.ts';

const MASK = '[redacted]';

/** Real responses are nested less deeply. Deeper values are masked whole, so that no hostile response exhausts the stack. */
const MAX_DEPTH = 100;

const MAX_CAUSE_FRAMES = 5;

/** A shorter secret can be part of an ordinary word by chance, so it is masked only where it is a whole word. */
const MIN_UNMISTAKABLE_LENGTH = 8;

/**
 * A secret, such as an API key, that no error, log line or hook may show. It is masked in texts that come from outside: as it is,
 * with `\/` as JSON writers escape a slash, and percent-encoded once.
 */
export class Secret {
  readonly #text: string;
  /** The ways in which the secret is written. */
  readonly #forms: readonly string[];
  readonly #pattern: RegExp;
  /** The length of the longest form. */
  readonly maxLength: number;

  constructor(text: string) {
    const percentEncoded = [toUpperHex, toLowerHex].flatMap((toHex) => {
      const encode = (character: string) => `%${toHex(character)}`;
      // As `encodeURIComponent` and as a form write it, and with all punctuation encoded.
      return [/[^\w.!~*'()-]/g, /[^\w.*-]/g, /[^a-z\d]/gi].map((pattern) => text.replace(pattern, encode));
    });
    const forms = new Set([text, text.replaceAll('/', '\\/'), ...percentEncoded]);
    this.#text = text;
    this.#forms = text === '' ? [] : [...forms];
    this.maxLength = Math.max(0, ...this.#forms.map((form) => form.length));
    const anyForm = this.#forms.map(escapePattern).join('|');
    const isUnmistakable = text.length >= MIN_UNMISTAKABLE_LENGTH;
    this.#pattern = new RegExp(isUnmistakable ? anyForm : `(?<![\\w-])(?:${anyForm})(?![\\w-])`, 'g');
  }

  /** The secret itself, for the request. */
  get text(): string {
    return this.#text;
  }

  /** Masks the secret in a text. */
  mask(text: string): string {
    return this.#isIn(text) ? text.replace(this.#pattern, MASK) : text;
  }

  /** Returns the first `length` characters of a text with the secret masked, also where the cut goes through it. */
  maskBeginning(text: string, length: number): string {
    if (length <= 0) return '';
    // A secret that begins before the cut ends within this part.
    const part = text.slice(0, length + this.maxLength);
    if (!this.#isIn(part)) return part.slice(0, length);
    let end = length;
    const masked = part.replace(this.#pattern, (found, offset: number) => {
      if (offset < length) end += MASK.length - Math.min(found.length, length - offset);
      return MASK;
    });
    return masked.slice(0, end);
  }

  /** Masks the secret in every text and field name of a JSON value. A value without the secret is returned as it is. */
  maskValue(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.mask(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= MAX_DEPTH) return MASK;
    const names = Object.keys(value);
    const fields = Object.values(value);
    const masked = fields.map((field) => this.maskValue(field, depth + 1));
    const isSame = masked.every((field, index) => field === fields[index]);
    if (Array.isArray(value)) return isSame ? value : masked;
    const maskedNames = names.map((name) => this.mask(name));
    if (isSame && maskedNames.every((name, index) => name === names[index])) return value;
    return Object.fromEntries(maskedNames.map((name, index) => [name, masked[index]]));
  }

  /** True if JSON that was parsed from `text` contains the secret, which `text` may contain escaped. */
  isInJson(value: unknown, text: string): boolean {
    if (this.#isIn(text)) return true;
    try {
      // Written again, only the backslash of `\/` is escaped.
      return text.includes('\\') && this.#isIn(JSON.stringify(value).replaceAll('\\\\', '\\'));
    } catch {
      // The value is nested deeper than the call stack allows.
      return true;
    }
  }

  /** Copies the parts of a foreign error and its causes that are safe to log; the original may contain a request or a socket. */
  maskCause(value: unknown, remaining = MAX_CAUSES): unknown {
    const error = readError(value);
    if (error === undefined) return this.mask(formatNonError(value));
    const { name, message, stack, code, cause } = error;
    const copy = new Error(this.mask(message));
    copy.name = this.mask(name);
    // An own enumerable `stack` would be printed twice, so this property is not enumerable.
    Object.defineProperty(copy, 'stack', { value: this.mask(shortenStack(stack)), configurable: true });
    if (code !== '') Object.assign(copy, { code: this.mask(code) });
    if (cause !== undefined && remaining > 1) copy.cause = this.maskCause(cause, remaining - 1);
    return copy;
  }

  #isIn(text: string): boolean {
    return this.#forms.some((form) => text.includes(form));
  }
}

function toLowerHex(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, '0');
}

function toUpperHex(character: string): string {
  return toLowerHex(character).toUpperCase();
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

function shortenStack(stack: string): string {
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

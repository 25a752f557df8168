import { setStack } from '../errors.ts';
import { MAX_CAUSES, maskUserInfo, readError } from './foreign.ts';

const MASK = '[redacted]';

/** Real responses are nested less deeply. Deeper values are masked whole, so that no hostile response exhausts the stack. */
const MAX_DEPTH = 100;

const MAX_CAUSE_FRAMES = 5;

/** A shorter secret can be part of an ordinary word by chance, so it is masked only where it is a whole word. */
const MIN_UNMISTAKABLE_LENGTH = 8;

/** The beginning of a word. The letter before it may be the end of an escape, as in `%20word` and `\nword`. */
const WORD_START = String.raw`(?:(?<![\w-])|(?<=%[\da-fA-F]{2}|\\[bfnrt]|\\u[\da-fA-F]{4}))`;
const WORD_END = String.raw`(?![\w-])`;

/** An escape in which a text can hide a character of a secret, such as `%2F` or `\/`. */
const ESCAPE = /%[\da-f]{2}|\\\//i;
/** JSON that can contain a secret which its text does not show: a visible ASCII character or a backslash is escaped. */
const HIDING_ESCAPE = /\\(?:u00[2-7]|\\)/;

/**
 * A secret, such as an API key, that no error, log line or hook may show. It is masked in texts that come from outside, also where
 * each of its characters is percent-encoded or not, and where a slash is written as `\/`, as JSON writers do.
 */
export class Secret {
  readonly #text: string;
  readonly #pattern: RegExp;
  /** The length of the secret with all its characters encoded. */
  readonly maxLength: number;

  constructor(text: string) {
    this.#text = text;
    this.maxLength = 3 * text.length;
    const anyForm = Array.from(text, toPattern).join('');
    const isUnmistakable = text.length >= MIN_UNMISTAKABLE_LENGTH;
    const pattern = isUnmistakable ? anyForm : WORD_START + anyForm + WORD_END;
    // An empty secret stands for a missing key, so its pattern matches nothing.
    this.#pattern = new RegExp(text === '' ? '(?!)' : pattern, 'g');
  }

  /** The secret itself, for the request. */
  get text(): string {
    return this.#text;
  }

  /** Masks the secret in a text. */
  mask(text: string): string {
    return this.#mayBeIn(text) ? text.replace(this.#pattern, MASK) : text;
  }

  /** Returns the first `length` characters of a text with the secret masked, also where the cut goes through it. */
  maskBeginning(text: string, length: number): string {
    if (length <= 0) return '';
    // A secret that begins before the cut ends within this part.
    const part = text.slice(0, length + this.maxLength);
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

  /** True if a response whose text was parsed to `value` contains the secret. */
  isInJson(value: unknown, text: string): boolean {
    if (this.#mayBeIn(text) && text.search(this.#pattern) >= 0) return true;
    return HIDING_ESCAPE.test(text) && this.maskValue(value) !== value;
  }

  /** Copies the parts of a foreign error and its causes that are safe to log; the original may contain a request or a socket. */
  maskCause(value: unknown, remaining = MAX_CAUSES): unknown {
    const error = readError(value);
    if (error === undefined) return maskUserInfo(this.mask(formatNonError(value)));
    const { name, message, stack, code, cause } = error;
    const copy = new Error(maskUserInfo(this.mask(message)));
    copy.name = this.mask(name);
    setStack(copy, maskUserInfo(this.mask(shortenStack(stack))));
    if (code !== '') Object.assign(copy, { code: this.mask(code) });
    if (cause !== undefined && remaining > 1) copy.cause = this.maskCause(cause, remaining - 1);
    return copy;
  }

  /** Finds out quickly that a text does not contain the secret: a text without escapes can contain it only as it is. */
  #mayBeIn(text: string): boolean {
    return text.includes(this.#text) || ESCAPE.test(text);
  }
}

/** Returns a pattern that matches a character as it is, percent-encoded, and after a backslash if it is a slash. */
function toPattern(character: string): string {
  const hex = character.charCodeAt(0).toString(16).padStart(2, '0');
  const anyHex = hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
  const plain = character.replace(/[\\^$.*+?()[\]{}|/]/, String.raw`\$&`);
  return `(?:%${anyHex}|${character === '/' ? '\\\\?' : ''}${plain})`;
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

/** The rule of API keys, for the client and for the fake service. */
export const KEY_RULE = 'visible ASCII characters without spaces, quotes and backslashes';

export function isKey(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) && !/["'`\\]/.test(value);
}

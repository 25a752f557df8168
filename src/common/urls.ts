import { kindOrNumber, quoteValue } from './messages.ts';

const MAX_DECODINGS = 8;

/** Decodes until nothing changes, because a lax server may decode `%252e` twice and read a dot. */
function decode(value: string, rounds = MAX_DECODINGS): string {
  const decoded = value.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return decoded === value || rounds === 1 ? decoded : decode(decoded, rounds - 1);
}

/** Tells whether a path contains a segment `.` or `..`, plain or percent-encoded. */
export function hasDotSegment(path: string): boolean {
  return decode(path)
    .split(/[/\\]/)
    .some((segment) => /^\s*\.\.?\s*$/.test(segment));
}

/** Removes slashes at the end. Without the lookbehind, the time would grow with the square of the number of slashes inside. */
export function trimSlashes(path: string): string {
  return path.replace(/(?<!\/)\/+$/, '');
}

const LOOPBACK_HOST = /^(localhost|.*\.localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/;

/** True for an `http:` URL of another machine, to which the key would be sent unencrypted (docs/service.md 1.7). */
export function isUnencrypted(text: string): boolean {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : undefined;
  return url?.protocol === 'http:' && !LOOPBACK_HOST.test(url.hostname);
}

/**
 * A host with an optional scheme, port and path. Credentials, queries and a single word without a scheme, except `localhost`, do
 * not match.
 */
const HOST_AND_PATH =
  /^(?:[a-z]+:\/\/[\w-]+(?:\.[\w-]+)*|localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+)?(?:\/[\w./-]*)?$/i;

/** Quotes a wrong URL. A text that does not look like a host with a path is described by its kind: it may contain a secret. */
export function quoteUrl(value: unknown): string {
  return typeof value === 'string' && HOST_AND_PATH.test(value) ? quoteValue(value) : kindOrNumber(value);
}

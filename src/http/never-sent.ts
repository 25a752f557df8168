/** Codes that mean that there was no connection, in whatever error they come. */
const NEVER_CONNECTED_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  // undici
  'UND_ERR_CONNECT_TIMEOUT',
  // Bun
  'ConnectionRefused',
  'FailedToOpenSocket',
]);

/** System calls that come before the first byte: whatever they fail with, nothing was sent. */
const CALLS_BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);

/** Deno has no codes; its own sentence says which step failed. A URL holds no space, so it can't pretend to be one. */
const DENO_NEVER_CONNECTED = /^error sending request for url \(\S+\): client error \(Connect\)/;

const DEEPEST_CAUSE = 5;

/** The error and its causes, outermost first; empty when it is none. */
export function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (
    let current = error;
    current instanceof Error && causes.length <= DEEPEST_CAUSE;
    current = current.cause
  )
    causes.push(current);
  return causes;
}

/**
 * True when a failure of `fetch` proves that no byte of the request has left, so that even a paid call may be repeated.
 *
 * Codes are proof, words are not: an upstream's own error text can speak of a refused connection. An error that has
 * another code besides, as one of a wrapper that tries again by itself, proves nothing.
 */
export function wasNeverSent(error: unknown): boolean {
  const causes = causesOf(error);
  const coded = causes.filter((cause) => 'code' in cause && typeof cause.code === 'string');
  if (coded.length > 0) return coded.every(isNeverConnected);
  const root = causes.at(-1);
  return 'Deno' in globalThis && root !== undefined && DENO_NEVER_CONNECTED.test(root.message);
}

function isNeverConnected(error: Error): boolean {
  const { code, syscall } = Object(error);
  return NEVER_CONNECTED_CODES.has(code) || CALLS_BEFORE_SENDING.has(syscall);
}

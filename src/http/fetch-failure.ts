import { MAX_CAUSES } from '../common/secrets.ts';

/** What a failure of `fetch` says about its request. */
export interface FetchFailure {
  /** The reason in the words of the runtime. */
  readonly reason: string;
  /** True if the request surely never reached the service. */
  readonly neverSent: boolean;
}

export function readFetchFailure(error: unknown): FetchFailure {
  return { reason: formatRootCause(error), neverSent: wasNeverSent(error) };
}

const NEVER_CONNECTED_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT', // undici
  'ConnectionRefused', // Bun
  'FailedToOpenSocket', // Bun
]);

const SYSTEM_CALLS_BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);

/** Deno's errors have no codes, but their messages name the failed step. A URL has no spaces, so its text cannot match by chance. */
const DENO_NEVER_CONNECTED = /^error sending request for url \(\S+\): client error \(Connect\)/;

function listCauses(error: unknown, maxCauses = MAX_CAUSES): Error[] {
  if (!(error instanceof Error)) return [];
  return [error, ...(maxCauses > 0 ? listCauses(error.cause, maxCauses - 1) : [])];
}

function hasCode(error: Error): error is Error & { readonly code: string; readonly syscall?: string } {
  return 'code' in error && typeof error.code === 'string';
}

function formatRootCause(error: unknown): string {
  const root = listCauses(error).at(-1);
  if (root === undefined) return 'unknown failure';
  if (root.message === 'bad port') return '`fetch` blocks this port (bad port); use another port';
  return root.message || (hasCode(root) ? root.code : root.name);
}

// Outside Deno only codes prove that nothing was sent, because a proxy's error text can mention a refused connection, too.
function wasNeverSent(error: unknown): boolean {
  const causes = listCauses(error);
  const coded = causes.filter(hasCode);
  const isBeforeSending = ({ code, syscall = '' }: (typeof coded)[number]) =>
    NEVER_CONNECTED_CODES.has(code) || SYSTEM_CALLS_BEFORE_SENDING.has(syscall);
  // All codes must prove it, because a wrapper of `fetch` may have sent the request and retried.
  if (coded.length > 0) return coded.every(isBeforeSending);
  const root = causes.at(-1);
  return 'Deno' in globalThis && root !== undefined && DENO_NEVER_CONNECTED.test(root.message);
}

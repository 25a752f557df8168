import { MAX_CAUSES } from '../common/secrets.ts';
import { kindOf } from '../common/validation.ts';

/** The meaning of a failure of `fetch` for the call. */
export interface FetchFailure {
  /** The reason in the words of the runtime, and what to do if a retry cannot help. */
  readonly reason: string;
  /** True if the request surely never reached the service. */
  readonly neverSent: boolean;
  /** True if a retry cannot help. */
  readonly isPermanent: boolean;
}

/** The facts that one error proves about its request. */
interface Verdict {
  readonly neverSent: boolean;
  /** Tells the user how to correct the cause. Set if a retry cannot help. */
  readonly advice?: string;
}

const MAYBE_SENT: Verdict = { neverSent: false };
const NEVER_SENT: Verdict = { neverSent: true };
const UNTRUSTED: Verdict = {
  neverSent: true,
  advice: `if you trust the certificate, set ${'Deno' in globalThis ? 'DENO_CERT' : 'NODE_EXTRA_CA_CERTS'} to a file with the certificate of its authority`,
};
const WRONG_NAME: Verdict = { neverSent: true, advice: 'check the host in `baseUrl`' };
const WRONG_DATE: Verdict = {
  neverSent: true,
  advice: 'check the clock of this machine, or have the certificate of the server renewed',
};
const PLAIN_PORT: Verdict = {
  neverSent: true,
  advice:
    'the port does not speak TLS; use another port, or, if the server has no TLS, begin `baseUrl` with http:',
};
const NO_COMMON_TLS: Verdict = {
  neverSent: true,
  advice: 'update this machine or the server, because they support no common version or cipher of TLS',
};
const BLOCKED_PORT: Verdict = { neverSent: true, advice: 'use another port' };
const REFUSED_TUNNEL: Verdict = {
  neverSent: true,
  advice: 'check the URL of the proxy, and its user name and password',
};

const VERDICT_BY_CODE: ReadonlyMap<string, Verdict> = new Map([
  ['ECONNREFUSED', NEVER_SENT],
  ['ENOTFOUND', NEVER_SENT],
  ['EAI_AGAIN', NEVER_SENT],
  ['UND_ERR_CONNECT_TIMEOUT', NEVER_SENT], // undici
  ['ConnectionRefused', NEVER_SENT], // Bun
  ['FailedToOpenSocket', NEVER_SENT], // Bun
  [
    'UND_ERR_INVALID_ARG',
    { neverSent: true, advice: 'take `fetch` and the dispatcher from the same version of undici' },
  ],
  ['ERR_TLS_CERT_ALTNAME_INVALID', WRONG_NAME],
  ['HOSTNAME_MISMATCH', WRONG_NAME],
  ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', WRONG_NAME],
  ['CERT_HAS_EXPIRED', WRONG_DATE],
  ['CERT_NOT_YET_VALID', WRONG_DATE],
  ['ERR_SSL_WRONG_VERSION_NUMBER', PLAIN_PORT],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', PLAIN_PORT],
  ['ERR_SSL_HTTP_REQUEST', PLAIN_PORT],
  ['ERR_SSL_UNKNOWN_PROTOCOL', PLAIN_PORT],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', NO_COMMON_TLS],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', NO_COMMON_TLS],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', NO_COMMON_TLS],
  ['ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE', NO_COMMON_TLS],
]);

/** The other codes with which OpenSSL refuses a certificate. */
const CERTIFICATE_CODE =
  /^(?:UNABLE_TO_(?:GET|VERIFY|DECRYPT|DECODE)_|CERT_|CRL_|ERROR_IN_C|DEPTH_ZERO_SELF_SIGNED_|SELF_SIGNED_CERT_|UNKNOWN_CERTIFICATE_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_EXCEEDED$)/;

const SYSTEM_CALLS_BEFORE_SENDING = new Set(['connect', 'getaddrinfo']);

/**
 * Verdicts for errors whose code is missing or too general. Each pattern matches only at the beginning of the message. The rest may
 * quote a gateway that could not connect to the service; such a request was sent.
 */
const VERDICT_BY_MESSAGE: readonly (readonly [RegExp, Verdict])[] = [
  [/^bad port$/, BLOCKED_PORT],
  [/^Client network socket disconnected before secure TLS connection was established/, NEVER_SENT],
  [
    /^(?:write EPROTO )?[\dA-F]*:?error:[^:]*:SSL routines:[^:]*:(?:wrong version number|packet length too long|http request)/,
    PLAIN_PORT,
  ],
  [
    /^(?:self[- ]signed certificate(?: in certificate chain)?|unable to (?:verify the first|get (?:local )?issuer) certificate)(?:;|$)/,
    UNTRUSTED,
  ],
  [/^certificate (?:has expired|is not yet valid)(?:;|$)/, WRONG_DATE],
  // A proxy that is overloaded may let a retry through.
  [
    /^(?:Proxy response \(|tunneling socket could not be established, statusCode=|Failed to establish tunnel to \S+ via \S+ HTTP\/1\.\d )(?:408|429|5\d\d)/,
    NEVER_SENT,
  ],
  [
    /^(?:Proxy response \(\d+\) !== 200|tunneling socket could not be established, statusCode=|Failed to establish tunnel to )/,
    REFUSED_TUNNEL,
  ],
];

/** Deno's errors have no codes, but their messages name the failed step. A URL has no spaces, so its text cannot match by chance. */
const VERDICT_IN_DENO: readonly (readonly [RegExp, Verdict])[] = [
  [
    /^error sending request for url \(\S+\): client error \(Connect\): invalid peer certificate: (?:NotValidForName|certificate not valid for name)/,
    WRONG_NAME,
  ],
  [
    /^error sending request for url \(\S+\): client error \(Connect\): invalid peer certificate: Expired/,
    WRONG_DATE,
  ],
  [/^error sending request for url \(\S+\): client error \(Connect\): invalid peer certificate/, UNTRUSTED],
  [/^error sending request for url \(\S+\): client error \(Connect\): received corrupt message/, PLAIN_PORT],
  [/^error sending request for url \(\S+\): client error \(Connect\): tunnel error/, REFUSED_TUNNEL],
  [/^error sending request for url \(\S+\): client error \(Connect\)/, NEVER_SENT],
];

/**
 * @param isOwnFetch - true if the option `fetch` is set
 * @param isPlain - true if the request was sent without TLS
 */
export function readFetchFailure(error: unknown, isOwnFetch: boolean, isPlain: boolean): FetchFailure {
  const { neverSent, advice } = judge(error) ?? MAYBE_SENT;
  if (advice !== undefined)
    return { reason: `${formatRootCause(error)}; ${advice}`, neverSent, isPermanent: true };
  if (isOwnFetch && isMistakeOfFetch(error)) {
    const what =
      error instanceof Error
        ? `${error.name}: ${formatRootCause(error)}`
        : `${kindOf(error)} instead of an Error`;
    const reason = `the function of the option \`fetch\` threw ${what}; correct that function`;
    return { reason, neverSent, isPermanent: true };
  }
  const hint =
    isPlain && isClosedAtOnce(error) ? '; if the port expects TLS, begin `baseUrl` with https:' : '';
  return { reason: formatRootCause(error) + hint, neverSent, isPermanent: false };
}

/** Judges an error with its causes, and with the errors of an AggregateError, which has one for each address of a host. */
function judge(error: unknown, remaining = MAX_CAUSES): Verdict | undefined {
  if (!(error instanceof Error)) return undefined;
  const own = judgeAlone(error);
  if (remaining === 0) return own;
  const errors: unknown = Reflect.get(error, 'errors');
  if (Array.isArray(errors) && errors.length > 0) {
    const verdicts = errors.map((each) => judge(each, remaining - 1) ?? own ?? MAYBE_SENT);
    // If any address may have received the request, count it as sent. A retry can help if it can reach any address.
    return (
      verdicts.find(({ neverSent }) => !neverSent) ?? verdicts.find(({ advice }) => !advice) ?? verdicts[0]
    );
  }
  const inner = judge(error.cause, remaining - 1);
  if (own === undefined || inner === undefined) return own ?? inner;
  // The error and its cause must both prove that nothing was sent. If a wrapper of `fetch` retries, one of the two can be from an
  // attempt that was sent.
  if (!own.neverSent || !inner.neverSent) return MAYBE_SENT;
  return own.advice === undefined ? inner : own;
}

function judgeAlone(error: Error): Verdict | undefined {
  const message = readMessage(error);
  const byMessage = VERDICT_BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1];
  if (byMessage !== undefined) return byMessage;
  if (hasCode(error)) {
    const { code, syscall, erroredSysCall = syscall ?? '' } = error;
    const byCode = VERDICT_BY_CODE.get(code) ?? (CERTIFICATE_CODE.test(code) ? UNTRUSTED : undefined);
    return byCode ?? (SYSTEM_CALLS_BEFORE_SENDING.has(erroredSysCall) ? NEVER_SENT : MAYBE_SENT);
  }
  if (!('Deno' in globalThis)) return undefined;
  return VERDICT_IN_DENO.find(([pattern]) => pattern.test(message))?.[1];
}

function listCauses(error: unknown, maxCauses = MAX_CAUSES): Error[] {
  if (!(error instanceof Error)) return [];
  return [error, ...(maxCauses > 0 ? listCauses(error.cause, maxCauses - 1) : [])];
}

interface CodedError extends Error {
  readonly code: string;
  readonly syscall?: string;
  /** The name of `syscall` in node-fetch. */
  readonly erroredSysCall?: string;
}

function hasCode(error: Error): error is CodedError {
  return 'code' in error && typeof error.code === 'string';
}

export function formatRootCause(error: unknown): string {
  const root = listCauses(error).at(-1);
  if (root === undefined) return 'unknown failure';
  const message = readMessage(root);
  if (message === 'bad port') return '`fetch` blocks this port (bad port)';
  // The message of OpenSSL also contains the place in its sources.
  const [, openSsl] = /error:[^:]*:SSL routines:[^:]*:([^:]+):/.exec(message) ?? [];
  return openSsl ?? (message || (hasCode(root) ? root.code : root.name));
}

/** Removes what node-fetch puts before the message: it contains the URL, and so an id. */
function readMessage({ message }: Error): string {
  return message.replace(/^request to \S+ failed, reason: /, '');
}

/** A server that expects TLS closes a connection without TLS, or sends bytes that are not HTTP. */
function isClosedAtOnce(error: unknown): boolean {
  const root = listCauses(error).at(-1);
  return (
    root !== undefined &&
    /\b(?:other side closed|socket hang up|Parse Error: Expected HTTP)/.test(root.message)
  );
}

const NETWORK_ERRORS = new Set([
  'fetch failed', // Node
  'Failed to fetch', // MSW
  'NetworkError when attempting to fetch resource.',
  'Network request failed',
  'Load failed',
]);

/**
 * True if the function itself has a bug. In Node and Bun, errors of the network have a code of the system or of a library;
 * codes such as `ERR_INVALID_URL` mean a wrong argument. Timeouts of the function itself count as errors of the network.
 */
function isMistakeOfFetch(error: unknown): boolean {
  const hasCodes = !('Deno' in globalThis) && globalThis.navigator?.userAgent !== 'Cloudflare-Workers';
  if (!hasCodes) return false;
  if (!(error instanceof Error)) return true;
  if (NETWORK_ERRORS.has(error.message) || ['AbortError', 'TimeoutError'].includes(error.name)) return false;
  const nested: unknown = Reflect.get(error, 'errors');
  const all = [
    ...listCauses(error),
    ...(Array.isArray(nested) ? nested.flatMap((each) => listCauses(each)) : []),
  ];
  return !all.some((each) => hasCode(each) && !each.code.startsWith('ERR_INVALID_'));
}

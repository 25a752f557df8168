import { type ErrorFields, listCauses, MAX_CAUSES, readError } from '../common/foreign.ts';
import { kindOf } from '../common/messages.ts';

/** The meaning of a failure of `fetch` for the call. */
export interface FetchFailure {
  /** The reason in the words of the runtime, and what to do about it. */
  readonly reason: string;
  /** True if the request surely never reached the service. */
  readonly neverSent: boolean;
  /** True if a retry cannot help. */
  readonly isPermanent: boolean;
}

interface Verdict extends Omit<FetchFailure, 'reason'> {
  readonly advice?: string;
  /** Replaces the words of the runtime. */
  readonly reason?: string | undefined;
}

const MAYBE_SENT: Verdict = { neverSent: false, isPermanent: false };
const NEVER_SENT: Verdict = { neverSent: true, isPermanent: false };
/** Nothing was sent, and a retry would meet the same obstacle. */
const permanent = (advice: string, reason?: string): Verdict => {
  return { neverSent: true, isPermanent: true, advice, reason };
};
const limitOfFetch = (what: string, option: string): Verdict => {
  const advice = `Node's \`fetch\` waits 300 s for ${what}; to wait longer, set an Agent of undici with a longer \`${option}\``;
  return { ...MAYBE_SENT, advice };
};
const CA_FILE = 'Deno' in globalThis ? 'DENO_CERT' : 'NODE_EXTRA_CA_CERTS';
const UNTRUSTED = permanent(`if you trust it, set ${CA_FILE} to a file with its authority's certificate`);
const WRONG_NAME = permanent('check the host in `baseUrl`');
const WRONG_DATE = permanent("check the clock of this machine, or have the server's certificate renewed");
const PLAIN_PORT = permanent(
  'the port does not speak TLS; use another port, or, if the server has no TLS, begin `baseUrl` with http: and set `allowInsecureHttp`',
);
const NO_COMMON_TLS = permanent('update this machine or the server (no common version or cipher of TLS)');
const REFUSED_TUNNEL = permanent('check the URL of the proxy, and its user name and password');
const BLOCKED_PORT = permanent('use another port', '`fetch` blocks this port (bad port)');
const UNMOCKED = permanent('add a handler, or let your mocks pass it on', 'no mock expects this request');
const OTHER_UNDICI = permanent('take `fetch` and the dispatcher from the same version of undici');

const PLAIN_PORT_TEXT =
  /^(?:write EPROTO )?[\dA-F]*:?error:[^:]*:SSL routines:[^:]*:(?:wrong version number|packet length too long|http request)/;
/** The codes with which OpenSSL refuses a certificate; the rules above this one know some of them better. */
const UNTRUSTED_CODE =
  /^(?:UNABLE_TO_(?:GET|VERIFY|DECRYPT|DECODE)_|CERT_|CRL_|ERROR_IN_C|DEPTH_ZERO_SELF_SIGNED_|SELF_SIGNED_CERT_|UNKNOWN_CERTIFICATE_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_EXCEEDED$)/;
const UNTRUSTED_TEXT =
  /^(?:self[- ]signed certificate(?: in certificate chain)?|unable to (?:verify the first|get (?:local )?issuer) certificate)(?:;|$)/;
const BUSY_PROXY_TEXT =
  /^(?:Proxy response \(|tunneling socket could not be established, statusCode=|Failed to establish tunnel to \S+ via \S+ HTTP\/1\.\d )(?:408|429|5\d\d)/;
const REFUSED_TUNNEL_TEXT =
  /^(?:Proxy response \(\d+\) !== 200|tunneling socket could not be established, statusCode=|Failed to establish tunnel to )/;
/** Deno has no codes, but its messages name the failed step. A URL has no spaces, so its text cannot match by chance. */
const deno = (step: string) =>
  new RegExp(String.raw`^error sending request for url \(\S+\): client error \(Connect\)${step}`);
const DENO_CERT = ': invalid peer certificate';

/**
 * What an error with this code, message or system call tells about its request. The first rule that applies decides. Messages match
 * at their beginning only: the rest may quote a gateway that could not connect to the service, and such a request was sent.
 */
const RULES: readonly (readonly ['code' | 'message' | 'syscall' | 'deno', RegExp, Verdict])[] = [
  ['code', /^(?:ERR_NOCK_NO_MATCH|UND_MOCK_ERR_MOCK_NOT_MATCHED)$/, UNMOCKED],
  ['message', /^(?:\[MSW\] Cannot bypass|Nock: Disallowed net connect)/, UNMOCKED],
  ['message', /^(?:fetch-mock: )?No (?:fallback response defined|response or fallback rule) /, UNMOCKED],
  ['message', /^(?:\[Polly\] |Recording for the following request )/, UNMOCKED],
  ['message', /^bad port$/, BLOCKED_PORT],
  ['message', /^Client network socket disconnected before secure TLS connection/, NEVER_SENT],
  ['message', PLAIN_PORT_TEXT, PLAIN_PORT],
  ['code', /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/, PLAIN_PORT],
  ['code', /^ERR_SSL_UNKNOWN_PROTOCOL$/, PLAIN_PORT],
  ['code', /^ERR_SSL_(?:UNSUPPORTED_PROTOCOL|TLSV1_ALERT_PROTOCOL_VERSION)$/, NO_COMMON_TLS],
  ['code', /^ERR_SSL_(?:SSLV3|SSL\/TLS)_ALERT_HANDSHAKE_FAILURE$/, NO_COMMON_TLS],
  ['code', /^(?:ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, WRONG_NAME],
  ['code', /^ERR_SSL_TLSV1_UNRECOGNIZED_NAME$/, WRONG_NAME],
  ['code', /^CERT_(?:HAS_EXPIRED|NOT_YET_VALID)$/, WRONG_DATE],
  ['message', /^certificate (?:has expired|is not yet valid)(?:;|$)/, WRONG_DATE],
  ['code', UNTRUSTED_CODE, UNTRUSTED],
  ['message', UNTRUSTED_TEXT, UNTRUSTED],
  ['message', BUSY_PROXY_TEXT, NEVER_SENT],
  ['message', REFUSED_TUNNEL_TEXT, REFUSED_TUNNEL],
  ['message', /^(?:tunneling socket could not |got illegal response body from proxy)/, NEVER_SENT], // tunnel
  ['code', /^(?:ERR_PROXY_TUNNEL|EPROXYTIMEOUT)$/, NEVER_SENT], // Node 24, hpagent
  ['deno', deno(`${DENO_CERT}: (?:NotValidForName|certificate not valid for name)`), WRONG_NAME],
  ['deno', deno(`${DENO_CERT}: (?:Expired|NotValidYet|certificate (?:expired|not valid yet))`), WRONG_DATE],
  ['deno', deno(DENO_CERT), UNTRUSTED],
  ['deno', deno(': received corrupt message'), PLAIN_PORT],
  ['deno', deno(': tunnel error'), REFUSED_TUNNEL],
  ['deno', deno(''), NEVER_SENT],
  ['code', /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/, NEVER_SENT],
  ['code', /^(?:ConnectionRefused|FailedToOpenSocket)$/, NEVER_SENT], // Bun
  ['code', /^UND_ERR_INVALID_ARG$/, OTHER_UNDICI],
  ['code', /^UND_ERR_HEADERS_TIMEOUT$/, limitOfFetch('the headers of a response', 'headersTimeout')],
  ['code', /^UND_ERR_BODY_TIMEOUT$/, limitOfFetch('the next part of a body', 'bodyTimeout')],
  ['syscall', /^(?:connect|getaddrinfo)$/, NEVER_SENT],
  // A number is not a code of the network.
  ['code', /^[A-Z]/i, MAYBE_SENT],
];

/**
 * @param isOwnFetch - true if the option `fetch` was called
 * @param isPlain - true if the request was sent without TLS
 */
export function readFetchFailure(failure: unknown, isOwnFetch: boolean, isPlain: boolean): FetchFailure {
  const { reason = formatRootCause(failure), advice, ...facts } = judge(failure) ?? MAYBE_SENT;
  if (advice !== undefined) return { ...facts, reason: `${reason}; ${advice}` };
  if (isOwnFetch && isMistake(failure)) {
    const error = readError(failure);
    const what = error === undefined ? `${kindOf(failure)} instead of an Error` : `${error.name}: ${reason}`;
    const mistake = `the function of the option \`fetch\` threw ${what}; correct that function`;
    return { ...facts, isPermanent: true, reason: mistake };
  }
  // A server that expects TLS closes a connection without TLS, or sends bytes that are not HTTP.
  const isClosed = /\b(?:other side closed|socket hang up|Parse Error: Expected HTTP)/.test(reason);
  const hint = isPlain && isClosed ? '; if the port expects TLS, begin `baseUrl` with https:' : '';
  return { ...facts, reason: reason + hint };
}

/** Judges an error with its causes, and with the errors of an AggregateError, which has one for each address of a host. */
function judge(value: unknown, remaining = MAX_CAUSES): Verdict | undefined {
  const error = readError(value);
  if (error === undefined) return undefined;
  const message = readMessage(error);
  const fields = { ...error, message, deno: 'Deno' in globalThis ? message : '' };
  const own = RULES.find(([field, pattern]) => pattern.test(fields[field]))?.[2];
  if (remaining === 0) return own;
  if (error.errors.length > 0) {
    const verdicts = error.errors.map((each) => judge(each, remaining - 1) ?? own ?? MAYBE_SENT);
    // If any address may have received the request, count it as sent. A retry can help if it can reach any address.
    const worst = verdicts.find(({ neverSent }) => !neverSent);
    return worst ?? verdicts.find(({ isPermanent }) => !isPermanent) ?? verdicts[0];
  }
  const inner = judge(error.cause, remaining - 1);
  if (own === undefined || inner === undefined) return own ?? inner;
  // The error and its cause must both prove that nothing was sent. If a wrapper of `fetch` retries, one of the two can be from an
  // attempt that was sent.
  if (!own.neverSent || !inner.neverSent) return MAYBE_SENT;
  return own.advice === undefined ? inner : own;
}

/** Removes what node-fetch puts before the message: it contains the URL, and so an id. */
function readMessage({ message }: ErrorFields): string {
  return message.replace(/^request to \S+ failed, reason: /, '');
}

function formatRootCause(failure: unknown): string {
  const root = listCauses(failure).at(-1);
  if (root === undefined) return 'unknown failure';
  const message = readMessage(root);
  // The message of OpenSSL also contains the place in its sources.
  const [, openSsl] = /error:[^:]*:SSL routines:[^:]*:([^:]+):/.exec(message) ?? [];
  return openSsl ?? (message || root.code || root.name);
}

/** The messages of Node, MSW and browsers if the network fails. */
const NETWORK_ERROR =
  /^(?:fetch failed|Failed to fetch|NetworkError when attempting to fetch resource\.|Network request failed|Load failed)$/;

/**
 * True if the function of the option `fetch` has a bug. In Node and Bun, errors of the network have a code of the system or of a
 * library; codes such as `ERR_INVALID_URL` mean a wrong argument. Timeouts of the function itself count as errors of the network.
 */
function isMistake(failure: unknown): boolean {
  if ('Deno' in globalThis || globalThis.navigator?.userAgent === 'Cloudflare-Workers') return false;
  const { name, message, errors } = readError(failure) ?? {};
  if (NETWORK_ERROR.test(message ?? '') || /^(?:Abort|Timeout)Error$/.test(name ?? '')) return false;
  const all = [failure, ...(errors ?? [])].flatMap((each) => listCauses(each));
  return !all.some(({ code }) => /^(?!ERR_INVALID_)[A-Z]/i.test(code));
}

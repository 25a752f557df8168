import { createHash, timingSafeEqual } from 'node:crypto';
import { onAbort } from '../common/abort.ts';
import { refuseOption, rejectOption } from '../common/check-options.ts';
import { isBytes } from '../common/foreign.ts';
import { kindOf, quoteValue } from '../common/messages.ts';
import { isJsonObject } from '../common/parsing.ts';
import { Secret } from '../common/secrets.ts';
import { ConfigurationError, WebhookAuthenticationError, WebhookParseError } from '../errors.ts';
import { formatError } from '../observability/logger.ts';

type WebhookSecret = string | readonly string[];

/** The parts of a request that tell which account a webhook is for. */
export interface WebhookRequestInfo {
  /**
   * The whole URL, with its query. `toNodeHandler` takes the host from the `Host` header, and the path as it was sent, also where
   * Express has mounted the handler at a path. With `toNodeHandler`, the protocol is always `http:`.
   */
  readonly url: string;
  /** Always `POST`. */
  readonly method: string;
  /** The headers. Anyone can send a request, so the headers prove nothing. */
  readonly headers: Headers;
}

/** The secret of one of several accounts. */
export interface AccountSecret {
  /** The webhook secret of the account, or a list of secrets. */
  readonly secret: WebhookSecret | null | undefined;
  /** Your own name for the account. Callbacks and the report get it, and it is a part of each key. Default: none. */
  readonly account?: string | undefined;
}

type FoundSecret = WebhookSecret | AccountSecret | null | undefined;
export type WebhookSecretSource =
  | WebhookSecret
  | ((request: WebhookRequestInfo) => FoundSecret | Promise<FoundSecret>);

const NO_SECRET = new Secret('');

/**
 * Builds the check of the `Authorization` header, which contains a shared secret as a bearer token (docs/service.md 8.4). The check
 * resolves to the account that the `secret` function returned, if any.
 */
export function buildAuthenticator(
  secret: WebhookSecretSource | false | undefined,
): (request: Request) => Promise<string | undefined> {
  if (secret === false) return async () => undefined;
  if (typeof secret !== 'function') {
    const digests = digestSecrets(secret, false);
    return async ({ headers }) => {
      checkBearer(headers, digests);
      return undefined;
    };
  }
  return async ({ url, method, headers }) => {
    let returned: unknown;
    try {
      returned = await secret({ url, method, headers });
    } catch (cause) {
      throw new ConfigurationError(
        `The \`secret\` function threw an error, so the webhook could not be checked: ${formatError(cause)}`,
        // Only a few fields of the error are copied: the others may contain the request to a vault, with its credentials.
        { option: 'secret', rule: 'threw an error', cause: NO_SECRET.maskCause(cause) },
      );
    }
    const { found, account } = readReturned(returned);
    if (found === undefined || found === null || (Array.isArray(found) && found.length === 0)) {
      throw new WebhookAuthenticationError(
        'The `secret` function returned no secret for the request of a webhook',
      );
    }
    checkBearer(headers, digestSecrets(found, true));
    return account;
  };
}

function readReturned(returned: unknown): { readonly found: unknown; readonly account?: string | undefined } {
  if (!isJsonObject(returned)) return { found: returned };
  const { secret: found, account } = returned;
  if (!('secret' in returned)) rejectReturned('an object without the field `secret`');
  if (account === undefined || (typeof account === 'string' && account !== '')) return { found, account };
  return rejectReturned(`${kindOf(account)} as \`account\``, 'return a text that is not empty');
}

function rejectReturned(
  what: string,
  advice = 'return the webhook secret, a list of secrets, or `{ secret, account }`',
): never {
  throw new ConfigurationError(`The \`secret\` function returned ${what}; ${advice}`);
}

function checkBearer(headers: Headers, digests: readonly Buffer[]): void {
  const authorization = headers.get('authorization');
  const token = /^bearer +(.*)/is.exec(authorization ?? '')?.[1];
  if (token === undefined) {
    const header = authorization ? 'an `Authorization` header of another kind' : 'no `Authorization` header';
    throw new WebhookAuthenticationError(
      `The webhook came without a bearer token (it has ${header}); the service sends the webhook secret as bearer token`,
    );
  }
  // A header contains one character for each byte, so latin1 restores the bytes that were sent.
  const sent = digest(trimEnd(token), 'latin1');
  // All digests have the same length and every secret is compared, so the time taken tells nothing about a secret.
  const matches = digests.filter((known) => timingSafeEqual(known, sent));
  if (matches.length === 0) {
    throw new WebhookAuthenticationError(
      'Wrong webhook secret: the bearer token of the request is not `secret`; copy the secret from the dashboard of the service',
    );
  }
}

/** Removes only spaces and tabs. `token.trimEnd()` would also remove the byte A0, the last byte of a secret such as `voilà`. */
function trimEnd(token: string): string {
  let end = token.length;
  while (token[end - 1] === ' ' || token[end - 1] === '\t') end -= 1;
  return token.slice(0, end);
}

/**
 * Mistakes with which every webhook would be refused. For example, the environment file has quotes around the secret, or the user
 * has copied the whole `Authorization` header.
 */
const FAULTS: readonly (readonly [pattern: RegExp, fault: string, advice: string])[] = [
  [/^\s|\s$/, 'begins or ends with white space', 'remove it'],
  [/^["'`“”‘’]|["'`“”‘’]$/, 'begins or ends with a quote', 'remove the quotes'],
  [/^(?:authorization\s*:|bearer[\s:])/i, 'begins with `Bearer` or `Authorization:`', 'pass only the secret'],
  [/\p{Cc}/u, 'contains a line break or another control character', 'remove it'],
];

/** @param isReturned - true if the `secret` function returned the secret */
function digestSecrets(secret: unknown, isReturned: boolean): Buffer[] {
  const secrets: unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0) rejectOption('secret', 'is an empty list', 'pass at least one secret');
  return secrets.map((value) => {
    if (typeof value !== 'string' || value === '') {
      if (isReturned) rejectReturned(secret === value ? kindOf(value) : `a list with ${kindOf(value)}`);
      if (value === undefined || value === '')
        rejectOption(
          'secret',
          'is missing',
          'pass the webhook secret, or `false` to accept webhooks from anyone',
        );
      return refuseOption('secret', 'a string, a list of strings, a function or false', value, kindOf);
    }
    const [, fault, advice = ''] = FAULTS.find(([pattern]) => pattern.test(value)) ?? [];
    if (fault === undefined) return digest(value, 'utf8');
    return isReturned
      ? rejectReturned(`a secret that ${fault}`, advice)
      : rejectOption('secret', fault, advice);
  });
}

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

export function findMediaTypeError(request: Request): string | undefined {
  const { headers } = request;
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  // A body parser has unpacked the body, but leaves the header as it was.
  if (encoding !== '' && encoding !== 'identity' && !parsedBodies.has(request)) {
    return `Expected an uncompressed body, got the \`content-encoding\` ${quoteValue(encoding)}`;
  }
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === '' || type === 'text/json' || /^application\/(?:[^/]+\+)?json$/.test(type)) return undefined;
  return `Expected the \`content-type\` to be \`application/json\`, got ${quoteValue(type)}`;
}

/** Keeps bodies that a framework such as Express has parsed already, so that they are not serialized and parsed again. */
const parsedBodies = new WeakMap<Request, { readonly body: unknown }>();

export function keepParsedBody(request: Request, body: unknown): void {
  parsedBodies.set(request, { body });
}

/** The bodies of requests. An inbox takes them for webhooks, whatever they contain. */
const receivedBodies = new WeakSet<object>();

export function isReceivedBody(body: unknown): boolean {
  return typeof body === 'object' && body !== null && receivedBodies.has(body);
}

/** Returns undefined for a body that is too long, or that did not end before `deadline` aborted. */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<{ readonly body: unknown } | undefined> {
  const read = await readBody(request, maxBytes, deadline);
  if (read === undefined) return undefined;
  // A set cannot contain text weakly.
  const body = typeof read.body === 'string' ? Buffer.from(read.body) : read.body;
  if (typeof body === 'object' && body !== null) receivedBodies.add(body);
  return { body };
}

async function readBody(
  request: Request,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<{ readonly body: unknown } | undefined> {
  // Some parsers turn an empty body into an empty object.
  if (request.headers.get('content-length') === '0') return { body: '' };
  if (Number(request.headers.get('content-length')) > maxBytes) return undefined;
  const parsed = parsedBodies.get(request);
  if (parsed !== undefined) return getByteLength(parsed.body) > maxBytes ? undefined : parsed;
  if (request.bodyUsed) {
    throw new ConfigurationError(
      'The request body was read before the webhook handler was called; call the handler first, or let the other code read `request.clone()`',
    );
  }
  if (request.body === null) return { body: '' };
  try {
    return await readStream(request.body, maxBytes, deadline);
  } catch (cause) {
    if (deadline.aborted) return undefined;
    // The adapter could not read the body.
    if (cause instanceof ConfigurationError) throw cause;
    throw new WebhookParseError('The request body ended early', { cause });
  }
}

async function readStream(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<{ readonly body: Uint8Array } | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  // Releasing the lock rejects the read that is under way.
  const unsubscribe = onAbort(deadline, () => reader.releaseLock());
  try {
    for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
      length += next.value.byteLength;
      if (length > maxBytes) return undefined;
      chunks.push(next.value);
    }
  } finally {
    unsubscribe();
    // If the stream were cancelled, some servers would close the connection before our response is sent.
    reader.releaseLock();
  }
  return { body: Buffer.concat(chunks, length) };
}

function getByteLength(body: unknown): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  return isBytes(body) ? body.byteLength : 0;
}

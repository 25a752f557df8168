import { createHash, timingSafeEqual } from 'node:crypto';
import { onAbort } from '../common/abort.ts';
import { kindOf, quoteValue } from '../common/validation.ts';
import { ConfigurationError, WebhookAuthenticationError, WebhookParseError } from '../errors.ts';
import { formatError } from '../observability/logger.ts';

type WebhookSecret = string | readonly string[];
export type WebhookSecretSource = WebhookSecret | (() => WebhookSecret | Promise<WebhookSecret>);

/** Builds the check of the `Authorization` header, which contains one shared secret as a bearer token (docs/service.md 8.4). */
export function buildAuthenticator(
  secret: WebhookSecretSource | false | undefined,
): (authorization: string | null) => void | Promise<void> {
  if (secret === false) return () => {};
  if (typeof secret !== 'function') {
    const digests = digestSecrets(secret);
    return (authorization) => checkBearer(authorization, digests);
  }
  return async (authorization) => {
    let current: WebhookSecret;
    try {
      current = await secret();
    } catch (cause) {
      throw new ConfigurationError(
        `The \`secret\` function threw an error, so the webhook could not be checked: ${formatError(cause)}`,
        { cause },
      );
    }
    if (!current || (typeof current !== 'string' && !Array.isArray(current)))
      throw new ConfigurationError(
        `The \`secret\` function returned ${kindOf(current)}; return the webhook secret, or a list of secrets`,
      );
    checkBearer(authorization, digestSecrets(current));
  };
}

function checkBearer(authorization: string | null, digests: readonly Buffer[]): void {
  const token = /^bearer +(.*)/is.exec(authorization ?? '')?.[1];
  if (token === undefined) {
    const header = authorization ? 'an `Authorization` header of another kind' : 'no `Authorization` header';
    throw new WebhookAuthenticationError(
      `The webhook came without a bearer token (it has ${header}); set the webhook secret at the sender`,
    );
  }
  // A header contains one character for each byte, so latin1 restores the bytes that were sent.
  const sent = digest(trimEnd(token), 'latin1');
  // All digests have the same length and every secret is compared, so the time taken tells nothing about a secret.
  const matches = digests.filter((known) => timingSafeEqual(known, sent));
  if (matches.length === 0) {
    throw new WebhookAuthenticationError(
      'The webhook came with another bearer token than the webhook secret; use the same secret here and at the sender',
    );
  }
}

/** Removes only what HTTP calls white space, because a secret may end with a no-break space. */
function trimEnd(token: string): string {
  let end = token.length;
  while (token[end - 1] === ' ' || token[end - 1] === '\t') end -= 1;
  return token.slice(0, end);
}

function digestSecrets(secret: unknown): Buffer[] {
  const secrets: unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0) {
    throw new ConfigurationError('`secret` is an empty list; pass at least one secret');
  }
  return secrets.map((value) => {
    if (typeof value === 'string' && value !== '' && value.trim() === value) return digest(value, 'utf8');
    if (value === undefined || value === '') {
      throw new ConfigurationError(
        '`secret` is missing; pass the webhook secret, or `false` to accept webhooks from anyone',
      );
    }
    throw new ConfigurationError(
      typeof value === 'string'
        ? '`secret` begins or ends with white space; remove it'
        : `Expected \`secret\` to be a string, a list of strings, a function or false, got ${kindOf(value)}`,
    );
  });
}

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

export function findMediaTypeError(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') {
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

/** Returns undefined for a body that is too long, or that did not end before `deadline` aborted. */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<{ readonly body: unknown } | undefined> {
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
  return body instanceof Uint8Array ? body.byteLength : 0;
}

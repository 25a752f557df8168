import { createHash, timingSafeEqual } from 'node:crypto';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError, WebhookAuthenticationError, WebhookParseError } from '../errors.ts';
import type { LogAdapter } from '../observability/logger.ts';

/** The account's webhook secret, or several while it is being changed. */
export type WebhookSecret = string | readonly string[];

/** A secret, or a function that gives it for each webhook: where it is not known yet when the program starts, or changes. */
export type WebhookSecretSource = WebhookSecret | (() => WebhookSecret | Promise<WebhookSecret>);

/**
 * Builds the check of the `Authorization` header of webhooks, which holds one shared secret as a bearer token.
 *
 * @returns a function that throws WebhookAuthenticationError unless the header holds one of the secrets
 * @throws ConfigurationError when a secret can't be one, and without any unless `secret` is `false`
 */
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
      throw new ConfigurationError('Expected the `secret` function to give a secret, got an error', {
        cause,
      });
    }
    checkBearer(authorization, digestSecrets(current));
  };
}

function checkBearer(authorization: string | null, digests: readonly Buffer[]): void {
  const token = /^bearer +(.*)/is.exec(authorization ?? '')?.[1];
  if (token === undefined) {
    throw new WebhookAuthenticationError(
      `Expected \`Authorization\` to be a bearer token, got ${kindOf(authorization ?? undefined)}`,
    );
  }
  // Header text holds one character a byte, so this gives the bytes that were sent back.
  const sent = digest(trimEnd(token), 'latin1');
  // Digests have one length, and every secret is compared, so the time taken tells nothing.
  const matches = digests.filter((known) => timingSafeEqual(known, sent)).length;
  if (matches === 0)
    throw new WebhookAuthenticationError('Expected the webhook secret, got another bearer token');
}

/** Takes off what HTTP calls white space, and no more: a no-break space may be part of a secret. */
function trimEnd(token: string): string {
  let end = token.length;
  while (token[end - 1] === ' ' || token[end - 1] === '\t') end -= 1;
  return token.slice(0, end);
}

function digestSecrets(secret: unknown): Buffer[] {
  const secrets: unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0)
    throw new ConfigurationError('Expected `secret` to hold at least one secret, got none');
  return secrets.map((value) => {
    if (typeof value === 'string' && value !== '' && value.trim() === value) return digest(value, 'utf8');
    const got = typeof value === 'string' && value !== '' ? 'one with white space around it' : kindOf(value);
    throw new ConfigurationError(
      `Expected \`secret\` to be a non-empty string, a list of them, a function, or false, got ${got}`,
    );
  });
}

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

/** Checks the headers of a request before a byte of its body is read, and returns what is wrong. */
export function findMediaTypeError(headers: Headers): string | undefined {
  const encoding = headers.get('content-encoding')?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') return 'Expected an uncompressed body';
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (type === '' || type === 'text/json' || /^application\/(?:[^/]+\+)?json$/.test(type)) return undefined;
  return 'Expected a body of type `application/json`';
}

/** Bodies that the host parsed before we saw the request. */
const parsedBodies = new WeakMap<Request, { readonly body: unknown }>();

/** Keeps a body that the host has parsed, so that it is not written out and parsed again. */
export function keepParsedBody(request: Request, body: unknown): void {
  parsedBodies.set(request, { body });
}

/** A body that declares at most this length is read at once, not as a stream: hosts hold a request to what it declares. */
const SHORT_BYTES = 64 * 1024;

/**
 * Reads a body. One that declares to be short is, for a server ends it there; any other is counted as it comes.
 *
 * @returns bytes, or what the host parsed; undefined when it is longer than `maxBytes`
 */
export async function readRequestBody(
  request: Request,
  maxBytes: number,
): Promise<{ readonly body: unknown } | undefined> {
  const declaredBytes = Number(request.headers.get('content-length'));
  if (declaredBytes > maxBytes) return undefined;
  const parsed = parsedBodies.get(request);
  if (parsed !== undefined) return byteLength(parsed.body) > maxBytes ? undefined : parsed;
  if (request.bodyUsed) {
    throw new ConfigurationError('Expected an unread request, got one whose body was read before');
  }
  if (request.body === null) return { body: '' };
  try {
    if (!(declaredBytes > 0 && declaredBytes <= SHORT_BYTES)) return await readStream(request.body, maxBytes);
    const body = new Uint8Array(await request.arrayBuffer());
    return body.byteLength > maxBytes ? undefined : { body };
  } catch (error) {
    throw new WebhookParseError('Expected a whole body, got one that broke off', { cause: error });
  }
}

async function readStream(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly body: unknown } | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); next.value !== undefined; next = await reader.read()) {
      length += next.value.byteLength;
      if (length > maxBytes) return undefined;
      chunks.push(next.value);
    }
  } finally {
    // Not cancelled: some hosts then close the connection before our response is out.
    reader.releaseLock();
  }
  return { body: Buffer.concat(chunks, length) };
}

function byteLength(body: unknown): number {
  if (typeof body === 'string') return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.byteLength : 0;
}

/** What anyone can send must not fill the log. */
const LINE_EVERY_MS = 60_000;

/** Tells of webhooks that were refused, in one line a minute. */
export class RefusalLog {
  readonly #logger: Pick<LogAdapter, 'warn'>;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #countSince = 0;

  constructor(logger: Pick<LogAdapter, 'warn'>) {
    this.#logger = logger;
  }

  /** @param error - says what was wrong with a request, and nothing of what it held */
  add(error: WebhookAuthenticationError | WebhookParseError): void {
    this.#countSince += 1;
    const now = performance.now();
    // A clock that a test has set back must not silence it.
    if (now >= this.#loggedAt && now - this.#loggedAt < LINE_EVERY_MS) return;
    const others = this.#countSince - 1;
    this.#logger.warn(
      `Refused a webhook: ${error.message}`,
      others === 0 ? undefined : { refusedSince: others },
    );
    this.#loggedAt = now;
    this.#countSince = 0;
  }
}

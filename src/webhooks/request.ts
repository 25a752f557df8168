// Specification: public contract
import { createHash, timingSafeEqual } from 'node:crypto';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError, WebhookAuthenticationError, WebhookParseError } from '../errors.ts';
import type { LogAdapter } from '../observability/logger.ts';

/** The account's webhook secret, or several while it is being changed. */
export type WebhookSecret = string | readonly string[];

/** A secret, or a function that gives it for each webhook: where it is not known yet when the program starts, or changes. */
export type WebhookSecretSource = WebhookSecret | (() => WebhookSecret | Promise<WebhookSecret>);

/**
 * Builds a check of the `Authorization` header of webhooks, which holds one shared secret as a bearer token.
 *
 * @param secret - one secret or several; each a non-empty string without white space around it
 * @returns a function that takes the header and throws WebhookAuthenticationError unless it holds one of the secrets
 * @throws ConfigurationError when a secret can't be one
 * @example
 * const authenticate = webhookAuthenticator(process.env.WEBHOOK_SECRET ?? '');
 * authenticate(request.headers.get('authorization')); // throws unless it is "Bearer <secret>"
 */
export function webhookAuthenticator(
  secret: WebhookSecret,
): (authorization: string | null | undefined) => void {
  const digests = checkedSecrets(secret).map((value) => digest(value, 'utf8'));
  return (authorization) => {
    const token = /^bearer +(.*)/is.exec(authorization ?? '')?.[1];
    if (token === undefined) {
      throw new WebhookAuthenticationError(
        `Expected \`Authorization\` to be a bearer token, got ${kindOf(authorization ?? undefined)}`,
      );
    }
    // Header text holds one character a byte, so this gives the bytes that were sent back.
    const given = digest(withoutSpaceAfter(token), 'latin1');
    // Digests have one length, and every secret is compared: the time taken tells nothing.
    const matches = digests.filter((known) => timingSafeEqual(known, given)).length;
    if (matches === 0)
      throw new WebhookAuthenticationError('Expected the webhook secret, got another bearer token');
  };
}

/** `webhookAuthenticator` for a secret that may have to be asked for; undefined without any. */
export function authenticatorOf(
  secret: WebhookSecretSource | undefined,
): ((authorization: string | null) => void | Promise<void>) | undefined {
  if (secret === undefined) return undefined;
  if (typeof secret !== 'function') return webhookAuthenticator(secret);
  return async (authorization) => {
    let given: WebhookSecret;
    try {
      given = await secret();
    } catch (cause) {
      throw new ConfigurationError('Expected the `secret` function to give a secret, got an error', {
        cause,
      });
    }
    webhookAuthenticator(given)(authorization);
  };
}

/** Takes off what HTTP calls white space, and no more: a no-break space is a byte of a secret here. */
function withoutSpaceAfter(token: string): string {
  let end = token.length;
  while (token[end - 1] === ' ' || token[end - 1] === '\t') end -= 1;
  return token.slice(0, end);
}

function checkedSecrets(secret: unknown): string[] {
  const secrets: unknown[] = Array.isArray(secret) ? secret : [secret];
  if (secrets.length === 0)
    throw new ConfigurationError('Expected `secret` to hold at least one secret, got none');
  return secrets.map((value) => {
    if (typeof value === 'string' && value !== '' && value.trim() === value) return value;
    const got = typeof value === 'string' && value !== '' ? 'one with white space around it' : kindOf(value);
    throw new ConfigurationError(`Expected \`secret\` to be a non-empty string, got ${got}`);
  });
}

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

/** What the request says about itself that rules it out, before a byte of the body is read. */
export function mediaTypeError(headers: Headers): string | undefined {
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

/** A body that says it is as short is read at once, not as a stream: hosts hold a request to the length it declares. */
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

import { createHash, timingSafeEqual } from 'node:crypto';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError, WebhookAuthenticationError } from '../errors.ts';

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
        'The `secret` function threw an error (the `cause`), so the webhook could not be checked',
        { cause },
      );
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
  // A header contains one character for each byte, so latin1 restores the bytes that were sent.
  const sent = digest(trimEnd(token), 'latin1');
  // All digests have the same length and every secret is compared, so the time taken tells nothing about a secret.
  const matches = digests.filter((known) => timingSafeEqual(known, sent));
  if (matches.length === 0) {
    throw new WebhookAuthenticationError('Expected the webhook secret, got another bearer token');
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
    throw new ConfigurationError('Expected `secret` to contain at least one secret, got an empty list');
  }
  return secrets.map((value) => {
    if (typeof value === 'string' && value !== '' && value.trim() === value) return digest(value, 'utf8');
    const got =
      typeof value === 'string' && value !== '' ? 'a string with white space around it' : kindOf(value);
    throw new ConfigurationError(
      `Expected \`secret\` to be a non-empty string, a list of such strings, a function, or false, got ${got}`,
    );
  });
}

function digest(text: string, encoding: 'utf8' | 'latin1'): Buffer {
  return createHash('sha256').update(text, encoding).digest();
}

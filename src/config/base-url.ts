import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127\.\d+\.\d+\.\d+$/.test(hostname)
  );
}

function parse(value: unknown): URL {
  if (value instanceof URL) return new URL(value);
  if (typeof value !== 'string' || value.trim() === '') {
    throw new ConfigurationError(
      `Expected \`baseUrl\` to be a URL, got ${kindOf(value)}; pass it, or set TRACKING_BASE_URL`,
    );
  }
  try {
    return new URL(value.trim());
  } catch {
    throw new ConfigurationError(
      'Expected `baseUrl` to be an absolute URL such as https://host/public/v1, got another string',
    );
  }
}

/**
 * Checks the base URL and cuts trailing slashes; its path is kept.
 *
 * @throws ConfigurationError when it is no URL, holds credentials, a query or a fragment, or would carry the key in the
 * clear
 */
export function resolveBaseUrl(value: unknown, allowInsecureHttp: boolean): string {
  const url = parse(value);
  if (url.username !== '' || url.password !== '') {
    throw new ConfigurationError(
      'Expected `baseUrl` to hold no credentials, got some; the key goes into `apiKey`',
    );
  }
  if (url.search !== '' || url.hash !== '') {
    throw new ConfigurationError('Expected `baseUrl` to end with its path, got a query or a fragment');
  }
  const isSecure =
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && (allowInsecureHttp || isLoopback(url.hostname)));
  if (!isSecure) {
    throw new ConfigurationError(
      `Expected \`baseUrl\` to be https: (or http: on loopback, or with \`allowInsecureHttp\`), got ${url.protocol}`,
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

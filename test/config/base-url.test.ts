import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { resolveConfig } from '../../src/config/config.ts';
import { ConfigurationError } from '../../src/errors.ts';

function resolveBaseUrl(baseUrl: unknown, allowInsecureHttp: boolean): string {
  // Callers without types pass anything.
  const options = { baseUrl, apiKey: 'key', allowInsecureHttp } as ConstructorParameters<
    typeof TrackingClient
  >[0];
  return resolveConfig({ ...options }).baseUrl;
}

describe('accepted', () => {
  test.each([
    ['https://host.test/public/v1/', 'https://host.test/public/v1'],
    ['https://host.test/public/v1///', 'https://host.test/public/v1'],
    ['https://host.test', 'https://host.test'],
    ['  https://HOST.test:443/v1\n', 'https://host.test/v1'],
    ['https://host.test:8443/v1', 'https://host.test:8443/v1'],
    [new URL('https://host.test/v1/'), 'https://host.test/v1'],
    ['http://localhost:3000/v1', 'http://localhost:3000/v1'],
    ['http://api.localhost/v1', 'http://api.localhost/v1'],
    ['http://127.0.0.1:80/v1', 'http://127.0.0.1/v1'],
    ['http://127.9.9.9/v1', 'http://127.9.9.9/v1'],
    ['http://[::1]:3000/v1', 'http://[::1]:3000/v1'],
  ])('%s → %s', (value, resolved) => {
    expect(resolveBaseUrl(value, false)).toBe(resolved);
  });

  test('http to another host with allowInsecureHttp → accepted', () => {
    expect(resolveBaseUrl('http://host.test/v1', true)).toBe('http://host.test/v1');
  });
});

const EXAMPLE = 'as in https://api.example.com/public/v1';

describe('refused', () => {
  test.each(['http://host.test/v1', 'http://localhost.evil.test/v1', 'http://127.0.0.1.evil.test'])(
    '%s → ConfigurationError, because the key would be sent unencrypted',
    (value) => {
      expect(() => resolveBaseUrl(value, false)).toThrow(
        /^`baseUrl` begins with http:\/\/, so the API key would be sent unencrypted; use https:\/\/, or set `allow/,
      );
    },
  );

  test.each(['ftp://host.test', 'file:///etc', 'javascript:alert(1)'])(
    '%s → ConfigurationError, also with allowInsecureHttp',
    (value) => {
      expect(() => resolveBaseUrl(value, true)).toThrow(ConfigurationError);
    },
  );

  test.each(['https://user@host.test', 'https://user:hunter2@host.test', 'https://:hunter2@host.test'])(
    '%s → ConfigurationError that does not print the credentials',
    (value) => {
      expect(() => resolveBaseUrl(value, false)).toThrow(
        new ConfigurationError(
          '`baseUrl` contains a user name or a password; remove it, and pass the API key as `apiKey`',
        ),
      );
    },
  );

  test.each(['https://host.test/v1?key=hunter2', 'https://host.test/v1#x'])(
    '%s → ConfigurationError',
    (value) => {
      expect(() => resolveBaseUrl(value, false)).toThrow(
        new ConfigurationError('`baseUrl` contains a query (`?`) or a fragment (`#`); remove it'),
      );
    },
  );

  test.each([
    [undefined, `\`baseUrl\` is missing; pass it, or set TRACKING_BASE_URL, ${EXAMPLE}`],
    ['', `\`baseUrl\` is missing; pass it, or set TRACKING_BASE_URL, ${EXAMPLE}`],
    [5, 'Expected `baseUrl` to be a string or a URL, got 5'],
    ['host.test/v1', `\`baseUrl\` (a string of 12 characters) is not an https:// URL; write it ${EXAMPLE}`],
    ['not a url', `\`baseUrl\` (a string of 9 characters) is not an https:// URL; write it ${EXAMPLE}`],
  ])('%j → ConfigurationError that names the kind, and what to set', (value, message) => {
    expect(() => resolveBaseUrl(value, false)).toThrow(new ConfigurationError(message));
  });
});

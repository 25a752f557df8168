import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../../src/client.ts';
import { resolveConfig } from '../../../src/config/config.ts';
import { ConfigurationError } from '../../../src/errors.ts';

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
const UNENCRYPTED =
  '`baseUrl` begins with http://, so the API key would be sent unencrypted; use https://, or set `allowInsecureHttp`';
const CREDENTIALS =
  '`baseUrl` contains a user name or a password; remove it, and pass the API key as `apiKey`';
const QUERY = '`baseUrl` contains a query (`?`) or a fragment (`#`); remove it';
const MISSING = `\`baseUrl\` is missing; pass it, or set TRACKING_BASE_URL, ${EXAMPLE}`;
const noUrl = (got: string) => `\`baseUrl\` (${got}) is not an https:// URL; write it ${EXAMPLE}`;

test.each<[value: unknown, allowInsecureHttp: boolean, message: string]>([
  ['http://host.test/v1', false, UNENCRYPTED],
  ['http://localhost.evil.test/v1', false, UNENCRYPTED],
  ['http://127.0.0.1.evil.test', false, UNENCRYPTED],
  ['ftp://host.test', true, noUrl("'ftp://host.test'")],
  ['xhttps://host.test', true, noUrl("'xhttps://host.test'")],
  ['ftp://host/v1', true, noUrl("'ftp://host/v1'")],
  ['ftp://hunter2@host/v1', true, noUrl('a string of 21 characters')],
  ['file:///etc', true, noUrl('a string of 11 characters')],
  ['javascript:alert(1)', true, noUrl('a string of 19 characters')],
  ['https://user@host.test', false, CREDENTIALS],
  ['https://user:hunter2@host.test', false, CREDENTIALS],
  ['https://:hunter2@host.test', false, CREDENTIALS],
  ['https://host.test/v1?key=hunter2', false, QUERY],
  ['https://host.test/v1#x', false, QUERY],
  [undefined, false, MISSING],
  ['', false, MISSING],
  [5, false, 'Expected `baseUrl` to be a string or a URL, got 5'],
  ['host.test/v1', false, noUrl("'host.test/v1'")],
  ['hunter2@host.test/v1', false, noUrl('a string of 20 characters')],
  ['host.test/v1?key=hunter2', false, noUrl('a string of 24 characters')],
  ['hunter2', false, noUrl('a string of 7 characters')],
  ['not a url', false, noUrl('a string of 9 characters')],
  // A host with an optional scheme, port and path is shown; anything else may contain a secret.
  ['localhost/v1', false, noUrl("'localhost/v1'")],
  ['api.eu-west-1.shop-a.test', false, noUrl("'api.eu-west-1.shop-a.test'")],
  ['host.test/a/b-c_d/v1.2/', false, noUrl("'host.test/a/b-c_d/v1.2/'")],
  ['127.0.0.1/v1', false, noUrl("'127.0.0.1/v1'")],
  ['ftp://my-host.eu-1.test:2121/a', true, noUrl("'ftp://my-host.eu-1.test:2121/a'")],
  ['FTP://HOST.TEST/V1', true, noUrl("'FTP://HOST.TEST/V1'")],
  ['key host.test/v1', false, noUrl('a string of 16 characters')],
  ['host.test/v1 key', false, noUrl('a string of 16 characters')],
  ['host.test/v1,key', false, noUrl('a string of 16 characters')],
  ['key@ftp://host.test', false, noUrl('a string of 19 characters')],
  ['host.', false, noUrl('a string of 5 characters')],
  ['.test', false, noUrl('a string of 5 characters')],
  ['host.te*t', false, noUrl('a string of 9 characters')],
  ['h*st.test', false, noUrl('a string of 9 characters')],
  ['ftp://h*st.test', true, noUrl('a string of 15 characters')],
  ['ftp://host.t*st', true, noUrl('a string of 15 characters')],
  ['ftp://host.test:21a', true, noUrl('a string of 19 characters')],
  ['ftp://host.test:21:22', true, noUrl('a string of 21 characters')],
])('%j, allowInsecureHttp %s → ConfigurationError that does not print it', (value, isAllowed, message) => {
  expect(() => resolveBaseUrl(value, isAllowed)).toThrow(new ConfigurationError(message));
});

test('a million slashes inside and at the end of the path → those at the end are removed', () => {
  const slashes = '/'.repeat(1_000_000);
  expect(resolveBaseUrl(`https://host.test${slashes}v1${slashes}`, false)).toBe(
    `https://host.test${slashes}v1`,
  );
});

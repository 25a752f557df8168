import { ServiceError } from './replies.ts';

/**
 * Checks the `Authorization` header (service.md 5; codes from the public contract).
 *
 * @param apiKeys - keys that are accepted; `undefined` accepts any
 * @throws ServiceError `auth_missing_header` or `auth_invalid_header` (400), `auth_invalid_api_key` (401)
 */
export function authenticate(header: string | undefined, apiKeys: ReadonlySet<string> | undefined): void {
  if (header === undefined || header.trim() === '')
    throw new ServiceError(400, {
      code: 'auth_missing_header',
      message: 'The Authorization header is missing.',
    });
  const key = /^Bearer +(\S+)$/i.exec(header.trim())?.[1];
  if (key === undefined)
    throw new ServiceError(400, {
      code: 'auth_invalid_header',
      message: 'The Authorization header must read: Bearer <API key>.',
    });
  if (apiKeys !== undefined && !apiKeys.has(key))
    throw new ServiceError(401, { code: 'auth_invalid_api_key', message: 'The API key is not known.' });
}

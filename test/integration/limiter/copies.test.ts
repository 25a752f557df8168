import { require as requireAsCommonJs } from 'tsx/cjs/api';
import { expect, test } from 'vitest';
import * as esm from '../../../src/index.ts';
import { API_KEY, rejectionOf } from '../../support/make-client.ts';
import { answer, startServer } from '../../support/scripted-server.ts';

/** The same sources once more, loaded as CommonJS: what a process gets that both imports and requires the package. */
const commonJs: typeof esm = requireAsCommonJs('../../../src/index.ts', import.meta.url);

test.each([
  ['ESM', esm, commonJs],
  ['CommonJS', commonJs, esm],
])(
  'a %s limiter under the client of the other copy, paused for an hour → RateLimitError at once',
  async (_name, own, other) => {
    const { baseUrl } = await startServer(answer(429, '', { 'Retry-After': '3600' }));
    const limiter = new own.TokenBucketLimiter();
    const client = new other.TrackingClient({ baseUrl, apiKey: API_KEY, limiter, logLevel: 'silent' });
    const failures = [await rejectionOf(client.couriers.list()), await rejectionOf(client.couriers.list())];
    for (const failure of failures) expect(failure).toBeInstanceOf(other.RateLimitError);
  },
);

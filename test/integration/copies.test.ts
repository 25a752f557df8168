import { require as requireAsCommonJs } from 'tsx/cjs/api';
import { describe, expect, test } from 'vitest';
import * as esm from '../../src/index.ts';
import { API_KEY, catchRejection } from '../support/make-client.ts';
import { respond, startServer } from '../support/scripted-server.ts';

/** A second copy of the sources as CommonJS, as in a process that both imports and requires the package. */
const commonJs: typeof esm = requireAsCommonJs('../../src/index.ts', import.meta.url);

const notFound = respond(404, { errors: [{ code: 'tracker_not_found' }], data: null });

async function failWith(copy: typeof esm): Promise<unknown> {
  const { baseUrl } = await startServer(notFound);
  const client = new copy.TrackingClient({ baseUrl, apiKey: API_KEY, retry: false, logLevel: 'silent' });
  return await catchRejection(client.trackers.get('t'));
}

describe.each([
  ['CommonJS', commonJs, esm],
  ['ESM', esm, commonJs],
])('an error of the %s client', (_name, thrower, catcher) => {
  test('isTrackingError of the other copy → true, also with the error code', async () => {
    const error = await failWith(thrower);
    expect(catcher.isTrackingError(error)).toBe(true);
    expect(catcher.isTrackingError(error, 'tracker_not_found')).toBe(true);
    expect(catcher.isTrackingError(error, 'tracker_conflict')).toBe(false);
  });

  test('instanceof with the classes of the other copy → true along the hierarchy only', async () => {
    const error = await failWith(thrower);
    // Two copies, each with classes of its own.
    expect(catcher.NotFoundError).not.toBe(thrower.NotFoundError);
    expect(error instanceof catcher.NotFoundError).toBe(true);
    expect(error instanceof catcher.ApiError).toBe(true);
    expect(error instanceof catcher.TrackingError).toBe(true);
    expect(error instanceof catcher.ServerError).toBe(false);
    expect(error instanceof catcher.ConnectionError).toBe(false);
  });
});

test.each([
  ['ESM', esm, commonJs],
  ['CommonJS', commonJs, esm],
])(
  'a %s limiter, paused for an hour, under a client of the other copy → RateLimitError at once',
  async (_name, { TokenBucketLimiter }, { TrackingClient, RateLimitError }) => {
    const { baseUrl } = await startServer(respond(429, '', { 'Retry-After': '3600' }));
    const limiter = new TokenBucketLimiter();
    const client = new TrackingClient({ baseUrl, apiKey: API_KEY, limiter, logLevel: 'silent' });
    const failures = [
      await catchRejection(client.couriers.list()),
      await catchRejection(client.couriers.list()),
    ];
    for (const failure of failures) expect(failure).toBeInstanceOf(RateLimitError);
  },
);

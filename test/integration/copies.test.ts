import { require as requireAsCommonJs } from 'tsx/cjs/api';
import { describe, expect, test } from 'vitest';
import * as esm from '../../src/index.ts';
import { API_KEY, rejectionOf } from '../support/make-client.ts';
import { answer, startServer } from '../support/scripted-server.ts';

/** The same sources once more, loaded as CommonJS: what a process gets that both imports and requires the package. */
const commonJs: typeof esm = requireAsCommonJs('../../src/index.ts', import.meta.url);

const notFound = answer(404, { errors: [{ code: 'tracker_not_found' }], data: null });

async function failureOf(copy: typeof esm, behaviour = notFound): Promise<unknown> {
  const { baseUrl } = await startServer(behaviour);
  const client = new copy.TrackingClient({ baseUrl, apiKey: API_KEY, retry: false, logLevel: 'silent' });
  return await rejectionOf(client.trackers.get('t'));
}

test('the two copies → share no class', () => {
  expect(commonJs.TrackingError).not.toBe(esm.TrackingError);
  expect(commonJs.TrackingClient).not.toBe(esm.TrackingClient);
});

describe.each([
  ['CommonJS', commonJs, esm],
  ['ESM', esm, commonJs],
])('an error of the %s client', (_name, thrower, catcher) => {
  test('isTrackingError of the other copy → true, with its code', async () => {
    const error = await failureOf(thrower);
    expect(catcher.isTrackingError(error)).toBe(true);
    expect(catcher.isTrackingError(error, 'tracker_not_found')).toBe(true);
    expect(catcher.isTrackingError(error, 'tracker_conflict')).toBe(false);
  });

  test('instanceof with the classes of the other copy → true along the hierarchy only', async () => {
    const error = await failureOf(thrower);
    expect(error instanceof catcher.NotFoundError).toBe(true);
    expect(error instanceof catcher.ApiError).toBe(true);
    expect(error instanceof catcher.TrackingError).toBe(true);
    expect(error instanceof catcher.ServerError).toBe(false);
    expect(error instanceof catcher.ConnectionError).toBe(false);
  });

  test('a retry in one copy of an error made there → not confused by the other copy', async () => {
    const error = await failureOf(thrower, answer(503, ''));
    expect(error instanceof catcher.ServerError).toBe(true);
  });
});

test('a limiter of one copy → used by the client of the other', async () => {
  const { baseUrl } = await startServer(answer(200, { data: [] }));
  const limiter = new esm.TokenBucketLimiter();
  const client = new commonJs.TrackingClient({ baseUrl, apiKey: API_KEY, limiter });
  await client.couriers.list();
  expect(client.rateLimits()['couriers.list'].inUse).toBe(1);
});

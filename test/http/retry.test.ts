import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { makeClient, networkFailure, type Step } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

const input = { trackingNumber: 'LA680658838NL' };
const CALLS: Record<string, (client: TrackingClient) => Promise<unknown>> = {
  create: (client) => client.trackers.create(input),
  bulk: (client) => client.trackers.createBulk([input]),
  'bulk with retryAmbiguous': (client) => client.trackers.createBulk([input], { retryAmbiguous: true }),
  'paid search': (client) => client.tracking.search(input),
  resend: (client) => client.trackers.resendWebhookEvents('t'),
};

const ALL = Object.keys(CALLS);
const REPEATABLE = ['create', 'bulk with retryAmbiguous'];

const coded = (status: number, code: string): Step => ({ status, body: { errors: [{ code }], data: null } });

const ROWS: [failure: string, step: Step, repeatedBy: string[]][] = [
  ['429', { status: 429 }, ALL],
  ['429 with a code of something else', coded(429, 'request_conflict'), ALL],
  ['429 quota_limit_reached', coded(429, 'quota_limit_reached'), []],
  ['a refused connection', networkFailure('ECONNREFUSED'), ALL],
  ['a reset connection', networkFailure('ECONNRESET'), REPEATABLE],
  ['a timeout', () => new Promise(() => {}), REPEATABLE],
  ['500', { status: 500 }, REPEATABLE],
  ['599', { status: 599 }, REPEATABLE],
  ['408', { status: 408 }, REPEATABLE],
  ['409 request_conflict', coded(409, 'request_conflict'), ['create']],
  ['409 tracker_conflict', coded(409, 'tracker_conflict'), []],
  ['409 without a code', { status: 409 }, []],
  ['400 request_conflict', coded(400, 'request_conflict'), []],
  ['400', coded(400, 'validation_error'), []],
  ['401', coded(401, 'auth_invalid_api_key'), []],
  ['403', { status: 403 }, []],
  ['422', { status: 422 }, []],
  ['a redirect', { status: 302 }, []],
  ['200 that is no JSON', { body: '<p>' }, []],
];

describe.each(ROWS)('%s', (_failure, step, repeatedBy) => {
  const cases = Object.entries(CALLS).map(
    ([name, call]) => [name, repeatedBy.includes(name) ? 2 : 1, call] as const,
  );
  test.each(cases)('%s → number of requests: %d', async (_name, count, call) => {
    const { client, requests } = makeClient(step, { retry: { retries: 1 } });
    await settleInVirtualTime(() => call(client).catch(() => {}));
    expect(requests).toHaveLength(count);
  });
});

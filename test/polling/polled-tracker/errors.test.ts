import { describe, expect, test, vi } from 'vitest';
import { networkFailure } from '../../support/make-client.ts';
import { BROKEN, failure, pass, results, startPoll } from '../polled-service.ts';

describe('errors', () => {
  test('five errors in a row → rejects with the last one as the cause', async () => {
    const hangUp = new TypeError('fetch failed', { cause: new Error('socket hang up') });
    const { reading, polls } = startPoll((poll) => (poll < 5 ? BROKEN : hangUp));
    await pass(20_000);
    const message =
      /^Polling `tracker-1` has ended after 5 errors in a row \(`maxCon.*`\); the last error: .*socket hang up/;
    expect(reading.end?.error).toMatchObject({
      name: 'TrackingError',
      message: expect.stringMatching(message),
      cause: expect.objectContaining({ name: 'ConnectionError' }),
    });
    expect(polls).toHaveLength(5);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('maxConsecutiveErrors 5, four errors and a success, again and again → polling goes on', async () => {
    const respondTo = (poll: number) => (poll % 5 === 0 ? results([]) : BROKEN);
    const { reading } = startPoll(respondTo, { maxConsecutiveErrors: 5 });
    await pass(10_000);
    expect(reading.items.map(({ poll }) => poll)).toEqual([5, 10]);
    expect(reading.end).toBeUndefined();
  });

  test('maxConsecutiveErrors 1 → rejects at the first error', async () => {
    const { reading } = startPoll(() => BROKEN, { maxConsecutiveErrors: 1 });
    await pass(1000);
    const message = expect.stringContaining(
      'has ended after 1 error (`maxConsecutiveErrors`); the last error: ',
    );
    expect(reading.end?.error).toMatchObject({ message });
  });

  test('a failed poll → one warning with the tracker, and the interval function gets the error count', async () => {
    const errorsInARow: number[] = [];
    const intervalMs = (context: { errorsInARow: number }) => {
      errorsInARow.push(context.errorsInARow);
      return 1000;
    };
    const { warn } = startPoll((poll) => (poll < 3 ? { body: 'no JSON' } : results([])), { intervalMs });
    await pass(3000);
    expect(errorsInARow).toEqual([0, 1, 2, 0]);
    const call = { endpoint: 'trackers.results', method: 'GET', path: '/trackers/{trackerId}/results' };
    const makeFields = (poll: number) =>
      expect.objectContaining({ ...call, id: 'tracker-1', poll, errorsInARow: poll });
    const message = expect.stringContaining('A poll failed');
    expect(warn.mock.calls).toEqual([
      [message, makeFields(1)],
      [message, makeFields(2)],
    ]);
  });
});

describe('errors of key, plan or quota', () => {
  const noAccess = failure(401, 'auth_invalid_api_key');

  test.each([
    [401, 'auth_invalid_api_key', 'AuthenticationError'],
    [403, 'forbidden', 'PermissionDeniedError'],
    [403, 'quota_limit_reached', 'QuotaExceededError'],
    [422, 'no_active_subscription', 'NoActiveSubscriptionError'],
  ])('%d %s at the first poll → rejects at once', async (status, code, name) => {
    const { reading } = startPoll(() => failure(status, code));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name });
  });

  test.each([
    ['an HTML page', { status: 403, body: '<html></html>', headers: { 'content-type': 'text/html' } }],
    ['JSON without a code', { status: 403, body: { message: 'Forbidden' } }],
    ['an empty body', { status: 403 }],
  ])(
    '403 with %s at the first poll, as a firewall sends it → counts as one failed poll',
    async (_, forbidden) => {
      const { reading } = startPoll((poll) => (poll === 1 ? forbidden : results([])));
      await pass(2000);
      expect(reading).toMatchObject({ items: [{ poll: 2 }], end: undefined });
    },
  );

  test('a certificate that is not trusted at the first poll → rejects at once, after one request', async () => {
    const { reading, polls } = startPoll(() => networkFailure('DEPTH_ZERO_SELF_SIGNED_CERT'));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name: 'ConnectionError', neverSent: true, isPermanent: true });
    expect(polls).toHaveLength(1);
  });

  test('a certificate that is not trusted at a later poll → polling goes on', async () => {
    const { reading } = startPoll((poll) => (poll === 2 ? networkFailure('CERT_HAS_EXPIRED') : results([])));
    await pass(3000);
    expect(reading.items.map(({ poll }) => poll)).toEqual([1, 3]);
  });

  test('no key at the first poll → rejects at once', async () => {
    const { reading } = startPoll(() => results([]), {}, { apiKey: () => '' });
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name: 'ConfigurationError' });
  });

  test('such an error after other errors, without a success → rejects', async () => {
    const { reading } = startPoll((poll) => (poll === 1 ? BROKEN : noAccess));
    await pass(2000);
    expect(reading.end?.error).toMatchObject({ name: 'AuthenticationError' });
  });

  const gateway = { status: 404, body: '<html></html>', headers: { 'content-type': 'text/html' } };

  test.each([
    ['after a success, as while a key is rotated', noAccess],
    ["a gateway's 404 without a code", gateway],
  ])('%s → counts as one failed poll', async (_, response) => {
    const { reading } = startPoll((poll) => (poll === 2 ? response : results([])));
    await pass(3000);
    expect(reading.items.map(({ poll }) => poll)).toEqual([1, 3]);
  });
});

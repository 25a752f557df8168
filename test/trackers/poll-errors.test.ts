import { describe, expect, test, vi } from 'vitest';
import { BROKEN, NOT_FOUND, pass, polledService, read, results } from './polled-service.ts';

describe('errors', () => {
  test('an abort during a request → is no failed poll', async () => {
    const warn = vi.fn();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { client } = polledService(() => results([]), 500, { logger, logLevel: 'warn' });
    const controller = new AbortController();
    const options = { initialDelayMs: 0, maxConsecutiveErrors: 1, signal: controller.signal };
    const reading = read(client.trackers.poll('tracker-1', options));
    await pass(100);
    controller.abort('enough');
    await pass(0);
    expect(reading.end?.error).toBe('enough');
    expect(warn).not.toHaveBeenCalled();
  });

  test('tracker_not_found → rejects at once', async () => {
    const { client, startsOf } = polledService(() => NOT_FOUND);
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(5000);
    expect(reading.end?.error).toMatchObject({ name: 'NotFoundError', code: 'tracker_not_found' });
    expect(startsOf()).toEqual([1000]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a gateway's 404 without a code → counts as a failed poll only", async () => {
    const gateway = { status: 404, body: '<html></html>', headers: { 'content-type': 'text/html' } };
    const { client } = polledService((poll) => (poll === 1 ? gateway : results([])));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(2000);
    expect(reading.items.map(({ poll }) => poll)).toEqual([2]);
  });

  test('five errors in a row → rejects with the last one as the cause', async () => {
    const { client, startsOf } = polledService((poll) =>
      poll < 5 ? BROKEN : new TypeError('fetch failed', { cause: new Error('socket hang up') }),
    );
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(20_000);
    expect(reading.end?.error).toMatchObject({
      name: 'TrackingError',
      message: expect.stringMatching(
        /^Polling `tracker-1` failed 5 times in a row, at last with: .*socket hang up/,
      ),
      cause: expect.objectContaining({ name: 'ConnectionError' }),
    });
    expect(startsOf()).toHaveLength(5);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('four errors, then a success, again and again → goes on', async () => {
    const { client } = polledService((poll) => (poll % 5 === 0 ? results([]) : BROKEN));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(20_000);
    expect(reading.items.map(({ poll }) => poll)).toEqual([5, 10, 15, 20]);
    expect(reading.end).toBeUndefined();
  });

  test('maxConsecutiveErrors 1 → the first error ends it', async () => {
    const { client } = polledService(() => BROKEN);
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, maxConsecutiveErrors: 1 }));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({
      message: expect.stringContaining('failed once, at last with'),
    });
  });

  test('a failed poll → one warning that names it, and the interval function is told', async () => {
    const warn = vi.fn();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const errorsInARow: number[] = [];
    const { client } = polledService((poll) => (poll < 3 ? BROKEN : results([])), 0, {
      logger,
      logLevel: 'warn',
    });
    const intervalMs = (context: { errorsInARow: number }) => {
      errorsInARow.push(context.errorsInARow);
      return 1000;
    };
    read(client.trackers.poll('tracker-1', { intervalMs }));
    await pass(3000);
    expect(errorsInARow).toEqual([0, 1, 2, 0]);
    const call = { endpoint: 'trackers.results', method: 'GET', path: '/trackers/{trackerId}/results' };
    expect(warn.mock.calls.map(([message, fields]) => [message, fields])).toEqual([
      [
        expect.stringContaining('A poll failed'),
        expect.objectContaining({ ...call, id: 'tracker-1', poll: 1, errorsInARow: 1 }),
      ],
      [
        expect.stringContaining('A poll failed'),
        expect.objectContaining({ ...call, id: 'tracker-1', poll: 2, errorsInARow: 2 }),
      ],
    ]);
  });

  test('20 failures in one poll, then a success → no failed poll, because polls repeat 20 times', async () => {
    const { client, polls } = polledService((poll) => (poll <= 20 ? BROKEN : results([])), 0, {
      retry: undefined,
    });
    const reading = read(
      client.trackers.poll('tracker-1', { intervalMs: 3_600_000, maxConsecutiveErrors: 1 }),
    );
    await pass(3_600_000 + 180_000);
    expect(polls).toHaveLength(21);
    expect(reading.items).toHaveLength(1);
  });

  test.each([
    ['of the client', { retry: { retries: 1 } }, {}],
    ['of the poll', {}, { retry: { retries: 1 } }],
  ])('retries %s → count instead', async (_, client, poll) => {
    const service = polledService(() => BROKEN, 0, { retry: undefined, ...client });
    read(service.client.trackers.poll('tracker-1', { intervalMs: 60_000, maxConsecutiveErrors: 1, ...poll }));
    await pass(120_000);
    expect(service.polls).toHaveLength(2);
  });

  test('a Retry-After of an hour → the poll waits, and is no failed one', async () => {
    const busy = { status: 503, body: '', headers: { 'retry-after': '3600' } };
    const { client } = polledService((poll) => (poll === 1 ? busy : results([])), 0, { retry: undefined });
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000, maxConsecutiveErrors: 1 }));
    await pass(3_602_000);
    expect(reading.items[0]).toMatchObject({ poll: 1 });
    expect(reading.end).toBeUndefined();
  });
});

describe('a key, plan or quota that refuses every poll', () => {
  const refused = (status: number, code: string) => ({
    status,
    body: { errors: [{ code, message: 'no' }], data: null },
  });

  test.each([
    [401, 'auth_invalid_api_key', 'AuthenticationError'],
    [403, 'forbidden', 'PermissionDeniedError'],
    [403, 'quota_limit_reached', 'QuotaExceededError'],
    [422, 'no_active_subscription', 'NoActiveSubscriptionError'],
  ])('%d %s at the first poll → rejects at once', async (status, code, name) => {
    const { client, polls } = polledService(() => refused(status, code));
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name });
    expect(polls).toHaveLength(1);
  });

  test('no key at the first poll → rejects at once', async () => {
    const { client } = polledService(() => results([]), 0, { apiKey: () => '' });
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name: 'ConfigurationError' });
  });

  test('after errors of another kind, with no success yet → rejects', async () => {
    const { client, polls } = polledService((poll) =>
      poll === 1 ? BROKEN : refused(401, 'auth_invalid_api_key'),
    );
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(2000);
    expect(reading.end?.error).toMatchObject({ name: 'AuthenticationError' });
    expect(polls).toHaveLength(2);
  });

  test('after a success, as while a key is rotated → counts as a failed poll only', async () => {
    const { client } = polledService((poll) =>
      poll === 2 ? refused(401, 'auth_invalid_api_key') : results([]),
    );
    const reading = read(client.trackers.poll('tracker-1', { intervalMs: 1000 }));
    await pass(3000);
    expect(reading.items.map(({ poll }) => poll)).toEqual([1, 3]);
  });
});

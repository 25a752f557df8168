import { describe, expect, test, vi } from 'vitest';
import { networkFailure, type StubResponse } from '../../support/make-client.ts';
import {
  BROKEN,
  failure,
  makeIds,
  NOT_FOUND,
  NOT_READY,
  nothingNew,
  pass,
  polledService,
  startPoll,
  startPollMany,
} from '../polled-service.ts';

const AWAY = expect.stringContaining('The service is not available; the next polls try again');
const BACK = expect.stringContaining('The service is available again');
const BACK_FOR_OTHERS = expect.stringContaining('The service is available again, but not for all trackers');
const HTML = { body: '<html></html>', headers: { 'content-type': 'text/html' } };
const NO_ACCESS = failure(401, 'auth_invalid_api_key');

/** Responds as a service that fails from one poll of each tracker to another. */
const failingFrom =
  (first: number, last: number, response: StubResponse | Error = BROKEN) =>
  (poll: number): StubResponse | Error =>
    poll >= first && poll <= last ? response : nothingNew();

const listPolls = ({ items }: { readonly items: readonly { readonly poll?: number | undefined }[] }) =>
  items.map(({ poll }) => poll);

describe('60 failures in a row, after a success → polling goes on', () => {
  test.each<[string, StubResponse | Error]>([
    ['408', { status: 408 }],
    ['429', { status: 429, headers: { 'retry-after': '0' } }],
    ['500', BROKEN],
    ['502 with an HTML page', { status: 502, ...HTML }],
    ['503 without a body', { status: 503 }],
    ['504 with a code that is not known', failure(504, 'upstream_timeout')],
    ['a refused connection', networkFailure('ECONNREFUSED')],
    ['a host that is not found', networkFailure('ENOTFOUND')],
    ['a connection that breaks', networkFailure('ECONNRESET')],
    ['a certificate that has expired', networkFailure('CERT_HAS_EXPIRED')],
  ])('%s', async (_, response) => {
    const { reading } = startPoll(failingFrom(2, 61, response));
    await pass(63_000);
    expect(reading.end).toBeUndefined();
    expect(listPolls(reading)).toEqual([1, 62, 63]);
  });

  test('timeouts', async () => {
    const latencyMs = (poll: number) => (poll > 1 && poll < 62 ? 3_600_000 : 0);
    const { reading } = startPoll(nothingNew, { timeoutMs: 500 }, { latencyMs });
    await pass(63_000);
    expect(reading.end).toBeUndefined();
    expect(listPolls(reading)).toEqual([1, 62, 63]);
  });

  test('waitUntilStopped, 500 → goes on until maxDurationMs', async () => {
    const { client } = polledService(failingFrom(2, 100));
    const options = { intervalMs: 1000, maxDurationMs: 60_500 };
    const waiting = client.trackers.waitUntilStopped('t', options).catch((error: unknown) => error);
    await pass(60_500);
    expect(await waiting).toMatchObject({ name: 'TimeoutError', timeoutMs: 60_500 });
  });
});

describe('after a success, failures that are not about an outage → polling ends at the fifth', () => {
  test.each<[string, StubResponse]>([
    ['401', NO_ACCESS],
    ['401 without a body', { status: 401 }],
    ['403 with a code', failure(403, 'forbidden')],
    ['403 with an HTML page', { status: 403, ...HTML }],
    ['404 with an HTML page', { status: 404, ...HTML }],
    ['422', failure(422, 'validation_error')],
    ['429 for a used-up quota', failure(429, 'quota_limit_reached')],
    ['503 for a used-up quota', failure(503, 'quota_limit_reached')],
    ['200 with an HTML page', HTML],
    ['200 with JSON of another form', { body: { hello: 'world' } }],
  ])('%s', async (_, response) => {
    const { reading, polls } = startPoll(failingFrom(2, 100, response));
    await pass(30_000);
    const message = expect.stringContaining('has ended after 5 errors in a row (`maxConsecutiveErrors`)');
    expect(reading.end?.error).toMatchObject({ name: 'TrackingError', message });
    expect(polls).toHaveLength(6);
  });

  test('with an outage between them → ends at the fifth of them', async () => {
    const respondTo = (poll: number) => (poll === 1 ? nothingNew() : poll % 2 === 0 ? NO_ACCESS : BROKEN);
    const { reading, polls } = startPoll(respondTo);
    await pass(30_000);
    expect(reading.end?.error).toMatchObject({ cause: { name: 'AuthenticationError' } });
    expect(polls).toHaveLength(10);
  });
});

test('a number of the caller → an outage counts, after a success, too', async () => {
  const { reading, polls } = startPoll(failingFrom(2, 100), { maxConsecutiveErrors: 5 });
  await pass(30_000);
  expect(reading.end?.error).toMatchObject({ cause: { name: 'ServerError' } });
  expect(polls).toHaveLength(6);
});

test('a stream in which only one tracker has succeeded → the outage ends the polling of the other', async () => {
  const { reading, stream } = startPollMany(
    (poll, id) => (id === 'a' && poll === 1 ? nothingNew() : BROKEN),
    ['a', 'b'],
  );
  await pass(60_000);
  expect(reading.items).toMatchObject([
    { id: 'a', poll: 1 },
    { id: 'b', error: { name: 'TrackingError' } },
  ]);
  expect(stream.size).toBe(1);
});

describe('the log of an outage', () => {
  test.each<[string, StubResponse | Error]>([
    ['500', BROKEN],
    ['429', { status: 429, headers: { 'retry-after': '1' } }],
    ['a refused connection', networkFailure('ECONNREFUSED')],
  ])('%s, 20 trackers, retries → one warning, and one line at the end', async (_, response) => {
    const { warn, info, reading } = startPollMany(
      (poll) => (poll > 1 && poll < 12 ? response : nothingNew()),
      makeIds(20),
      { intervalMs: 60_000 },
      { retry: undefined },
    );
    await pass(60_000 * 5 + 30_000);
    expect(warn.mock.calls).toEqual([
      [
        AWAY,
        {
          noticedBy: expect.stringMatching(/^tracker-\d+$/),
          reason: expect.stringContaining('/trackers/…/results'),
        },
      ],
    ]);
    expect(info.mock.calls).toEqual([[BACK]]);
    expect(new Set(listPolls(reading).slice(-20))).toEqual(new Set([5]));
  });

  test('a retry that succeeds → no line', async () => {
    const { warn, info } = startPoll(failingFrom(2, 2), {}, { retry: undefined });
    await pass(5000);
    expect([warn.mock.calls, info.mock.calls]).toEqual([[], []]);
  });

  test('one tracker that keeps failing among others that succeed → a warning with its id, and one line at its second failure', async () => {
    const respondTo = (poll: number, id: string) => (id === 'tracker-1' && poll > 1 ? BROKEN : nothingNew());
    const { warn, info } = startPollMany(respondTo, makeIds(3));
    await pass(30_000);
    expect(warn.mock.calls).toEqual([[AWAY, expect.objectContaining({ noticedBy: 'tracker-1' })]]);
    expect(info.mock.calls).toEqual([[BACK_FOR_OTHERS, { stillFailing: 1 }]]);
  });

  test('one tracker that fails for ever, and two outages of all trackers → a warning and a line at the end of each', async () => {
    const isAway = (poll: number) => [5, 6, 10].includes(poll);
    const respondTo = (poll: number, id: string) =>
      (id === 'tracker-1' && poll > 1) || isAway(poll) ? BROKEN : nothingNew();
    const { warn, info } = startPollMany(respondTo, makeIds(4));
    await pass(15_000);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([AWAY, AWAY, AWAY]);
    expect(info.mock.calls).toEqual(Array(3).fill([BACK_FOR_OTHERS, { stillFailing: 1 }]));
  });

  test('a tracker that succeeds after it kept failing → the next outage ends with the usual line', async () => {
    const respondTo = (poll: number, id: string) =>
      (id === 'tracker-1' && poll > 1 && poll < 5) || poll === 8 ? BROKEN : nothingNew();
    const { info } = startPollMany(respondTo, makeIds(3));
    await pass(12_000);
    expect(info.mock.calls).toEqual([[BACK_FOR_OTHERS, { stillFailing: 1 }], [BACK]]);
  });

  test('two streams → one warning each', async () => {
    const { client, warn } = polledService(failingFrom(2, 100));
    for (const id of ['a', 'b']) void client.trackers.poll(id, { intervalMs: 1000 }).next();
    for (const id of ['c', 'd']) {
      const stream = client.trackers.poll(id, { intervalMs: 1000 });
      void stream.next().then(() => stream.next());
    }
    await pass(5000);
    expect(warn.mock.calls.map(([, fields]) => fields.noticedBy)).toEqual(['c', 'd']);
  });

  test('the failing tracker is deleted → no line at the end, and the next outage is warned of', async () => {
    const respondTo = (poll: number, id: string) =>
      poll > 1 && (id === 'a' || poll === 5) ? BROKEN : nothingNew();
    const { warn, info, stream } = startPollMany(respondTo, ['a', 'b']);
    await pass(2500);
    stream.delete('a');
    await pass(2500);
    expect(info).not.toHaveBeenCalled();
    expect(warn.mock.calls.map(([, fields]) => fields.noticedBy)).toEqual(['a', 'b']);
  });

  test('a failure of another kind after an outage → ends the outage, and warns by itself', async () => {
    const respondTo = (poll: number) => (poll === 2 ? BROKEN : poll === 3 ? NO_ACCESS : nothingNew());
    const { warn, info } = startPoll(respondTo);
    await pass(3000);
    expect(info.mock.calls).toEqual([[BACK]]);
    const fields = { id: 'tracker-1', poll: 3, errorsInARow: 2, endpoint: 'trackers.results' };
    expect(warn.mock.calls).toEqual([
      [AWAY, expect.anything()],
      [expect.stringContaining('A poll failed'), expect.objectContaining(fields)],
    ]);
  });

  test('the failing tracker is deleted at the service → the line at the end', async () => {
    const respondTo = (poll: number) => (poll === 1 ? nothingNew() : poll === 2 ? BROKEN : NOT_FOUND);
    const { info, reading } = startPollMany(respondTo, ['a']);
    await pass(3000);
    expect(info.mock.calls).toEqual([[BACK]]);
    expect(reading.items.at(-1)).toMatchObject({ error: { name: 'NotFoundError' } });
  });

  test('a key that cannot be read after an outage → no line at the end, because nothing was sent', async () => {
    let key = 'sk-0123456789';
    const { info, warn } = startPoll(failingFrom(2, 2), {}, { apiKey: () => key });
    await pass(2500);
    key = '';
    await pass(1000);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([AWAY, expect.stringContaining('A poll failed')]);
    expect(info).not.toHaveBeenCalled();
  });

  test('a failure that ends the polling → no warning', async () => {
    const { warn, reading } = startPoll(() => BROKEN, { maxConsecutiveErrors: 1 });
    await pass(2000);
    expect(reading.end).toBeDefined();
    expect(warn).not.toHaveBeenCalled();
  });
});

describe('onPollError', () => {
  test('failures of two kinds → id, error, how many in a row, and whether the service failed', async () => {
    const onPollError = vi.fn();
    const respondTo = (poll: number) => (poll === 2 ? BROKEN : poll === 3 ? NO_ACCESS : nothingNew());
    startPollMany(respondTo, ['a'], {}, { hooks: { onPollError } });
    await pass(5000);
    expect(onPollError.mock.calls).toEqual([
      [{ id: 'a', error: expect.objectContaining({ name: 'ServerError' }), errorsInARow: 1, isOutage: true }],
      [
        {
          id: 'a',
          error: expect.objectContaining({ name: 'AuthenticationError' }),
          errorsInARow: 2,
          isOutage: false,
        },
      ],
    ]);
  });

  test('a tracker that does not exist → called before the stream ends', async () => {
    const onPollError = vi.fn();
    startPoll(() => NOT_FOUND, {}, { hooks: { onPollError } });
    await pass(2000);
    const error = expect.objectContaining({ name: 'NotFoundError' });
    expect(onPollError.mock.calls).toEqual([[{ id: 'tracker-1', error, errorsInARow: 1, isOutage: false }]]);
  });

  test('no results yet, a retry that succeeds, and an abort → not called', async () => {
    const onPollError = vi.fn();
    const controller = new AbortController();
    const respondTo = (poll: number) => (poll === 1 ? BROKEN : NOT_READY);
    const service = { hooks: { onPollError }, retry: undefined, latencyMs: 500 };
    startPoll(respondTo, { intervalMs: 10_000, signal: controller.signal }, service);
    await pass(20_200);
    controller.abort();
    await pass(1000);
    expect(onPollError).not.toHaveBeenCalled();
  });

  test('pollOnce that rejects → not called', async () => {
    const onPollError = vi.fn();
    const { client } = polledService(() => BROKEN, { hooks: { onPollError } });
    await expect(client.trackers.pollOnce('t')).rejects.toMatchObject({ name: 'ServerError' });
    expect(onPollError).not.toHaveBeenCalled();
  });

  test('a hook that throws → polling goes on', async () => {
    const onPollError = () => {
      throw new Error('mine');
    };
    const { reading } = startPoll(failingFrom(2, 2), {}, { hooks: { onPollError } });
    await pass(3000);
    expect(listPolls(reading)).toEqual([1, 3]);
  });
});

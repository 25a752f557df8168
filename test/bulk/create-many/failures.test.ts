import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackerInput } from '../../../src/index.ts';
import type { TrackingClientOptions } from '../../../src/options.ts';
import { deferred } from '../../support/deferred.ts';
import { networkFailure, type StubResponse } from '../../support/make-client.ts';
import { useVirtualTime } from '../../support/virtual-time.ts';
import {
  bulkService,
  collect,
  countStatuses,
  createAll,
  created,
  failed,
  inVirtualTime,
  makeInputs,
  refused,
  settled,
} from '../bulk-service.ts';

const reset = networkFailure('ECONNRESET');
const notSent = networkFailure('ECONNREFUSED');
const quota = refused(403, 'quota_limit_reached');
const bulkLimit = refused(403, 'bulk_create_limit_exceeded');
const ONE_BY_ONE = { chunkSize: 1, concurrency: 1 };
const failSecond = (failure: StubResponse | Error) => (inputs: readonly TrackerInput[], request: number) =>
  request === 2 ? failure : created(inputs);
const text = (status: number, body = '') => ({ status, body });

describe('a chunk that fails', () => {
  const noCode = { status: 400, body: { status: 'error', data: null, error: { message: 'no' } } };
  const noItems = { status: 400, body: { ...Object(refused(400, 'parsing_error').body), data: [] } };

  test.each([
    ['a reset', reset, 'unknown', 'connection_failed'],
    ['a refused connection', notSent, 'error', 'connection_failed'],
    ['500', failed(500, 'processing_error'), 'unknown', 'processing_error'],
    ['a gateway page with 502', text(502, '<html>'), 'unknown', 'http_502'],
    ['408', text(408), 'unknown', 'http_408'],
    ['429', text(429, 'slow down'), 'error', 'http_429'],
    ['422', failed(422, 'validation_error'), 'error', 'validation_error'],
    ['300', text(300), 'error', 'http_300'],
    ['an empty 403', text(403), 'error', 'http_403'],
    ['a 403 of HTML, as from a firewall', text(403, '<html>Forbidden</html>'), 'error', 'http_403'],
    ['a 403 of JSON without a code', text(403, '{"message":"Forbidden"}'), 'error', 'http_403'],
    [
      'a certificate that is not trusted',
      networkFailure('SELF_SIGNED_CERT_IN_CHAIN'),
      'error',
      'connection_failed',
    ],
    ['400 in the bulk envelope', refused(400, 'parsing_error'), 'error', 'parsing_error'],
    ['the same with an empty list of items', noItems, 'error', 'parsing_error'],
    ['the same without a code', noCode, 'error', 'http_400'],
    ['a success that is cut off', text(201, '{"status":"success"'), 'unknown', 'invalid_response'],
    ['a success without items', text(201, '{"status":"success"}'), 'unknown', 'not_in_response'],
    ['a success that is an error', refused(201, 'processing_error'), 'unknown', 'processing_error'],
  ])('%s → its inputs get the error, and the other chunks go on', async (_, failure, status, code) => {
    const run = await createAll(failSecond(failure), makeInputs(3), ONE_BY_ONE);
    expect(run.error).toBeUndefined();
    expect(run.sent).toHaveLength(3);
    expect(run.statuses).toEqual(['created', status, 'created']);
    expect(run.codes[1]).toBe(code);
  });

  test('a timeout → outcome unknown', async () => {
    useVirtualTime();
    const run = createAll(() => new Promise(() => {}), makeInputs(1), { timeoutMs: 5000 });
    await settled();
    const { outcomes } = await inVirtualTime(run, 5000);
    expect(outcomes[0]).toMatchObject({ status: 'unknown', errors: [{ code: 'timeout' }] });
  });

  test.each([
    ['no key', { apiKey: () => '' }, 'request_failed'],
    ['a full queue', { rateLimit: { limits: { 'trackers.createBulk': 1 }, maxQueue: 0 } }, 'queue_full'],
  ])('%s → outcome error, and that chunk is not sent', async (_, client, code) => {
    const { outcomes, sent } = await createAll(created, makeInputs(2), { chunkSize: 1 }, client);
    expect(outcomes[1]).toMatchObject({ status: 'error', errors: [{ code }] });
    expect(sent.flat()).not.toContainEqual(outcomes[1]?.input);
  });
});

describe('a request that may have been carried out', () => {
  beforeEach(useVirtualTime);

  test('refused connections, then an abort before the next attempt → outcome error, because nothing was sent', async () => {
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const run = createAll(() => notSent, makeInputs(1), options, { retry: undefined });
    await vi.advanceTimersByTimeAsync(10);
    controller.abort('enough');
    const { outcomes, sent } = await run;
    expect(sent).toHaveLength(1);
    expect(outcomes[0]).toMatchObject({ status: 'error', errors: [{ code: 'aborted' }] });
  });

  test('maxBackoffMs of 1 s and no number of retries → a chunk is sent again 20 times, within a second each', async () => {
    const sentAt: number[] = [];
    const respond = () => {
      sentAt.push(performance.now());
      return notSent;
    };
    const options = { retry: { maxBackoffMs: 1_000 } };
    await inVirtualTime(createAll(respond, makeInputs(1), options, { retry: undefined }));
    expect(sentAt).toHaveLength(21);
    for (const [index, at] of sentAt.slice(1).entries())
      expect(at - (sentAt[index] ?? 0)).toBeLessThanOrEqual(1_001);
  });
});

describe('failures that stop the run', () => {
  test.each([
    ['403 quota_limit_reached', quota, 'quota_limit_reached'],
    ['403 bulk_create_limit_exceeded', bulkLimit, 'bulk_create_limit_exceeded'],
    ['401', failed(401, 'auth_invalid_api_key'), 'auth_invalid_api_key'],
    ['403 with an unknown code', failed(403, 'forbidden'), 'forbidden'],
    ['422 no_active_subscription', failed(422, 'no_active_subscription'), 'no_active_subscription'],
  ])('%s in mid-run → the rest get outcome error with that code, unsent', async (_, failure, code) => {
    const inputs = [...makeInputs(4), { trackingNumber: 'x' }];
    const run = await createAll(failSecond(failure), inputs, ONE_BY_ONE);
    expect(run.error).toBeUndefined();
    expect(run.sent).toHaveLength(2);
    expect(run.statuses).toEqual(['created', 'error', 'error', 'error', 'invalid']);
    expect(run.codes).toEqual([undefined, code, code, code, 'validation_error']);
  });

  test('two requests under way are refused for different reasons → the rest get the first reason', async () => {
    const [first, second] = [deferred(), deferred()];
    const reply = async (_: unknown, request: number) => {
      await (request === 1 ? first : second).promise;
      return request === 1 ? bulkLimit : quota;
    };
    const run = createAll(reply, makeInputs(3), { chunkSize: 1, concurrency: 2 });
    await settled();
    second.resolve();
    await settled();
    first.resolve();
    const { sent, codes } = await run;
    expect(sent).toHaveLength(2);
    expect(codes).toEqual(['bulk_create_limit_exceeded', 'quota_limit_reached', 'quota_limit_reached']);
  });
});

describe('a long pause in mid-run', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  /** A service that asks for a pause at the second request, and its client with the built-in limiter. */
  function pausingService(retryAfterSeconds: number, options: TrackingClientOptions = {}) {
    const pause = { status: 429, headers: { 'retry-after': `${retryAfterSeconds}` }, body: '' };
    return bulkService(failSecond(pause), { rateLimit: undefined, retry: undefined, ...options });
  }

  test('a pause of ten minutes → the run waits, and every input is created', async () => {
    const { client, sent } = pausingService(600);
    const collecting = collect(client.trackers.createMany(makeInputs(10), { chunkSize: 1 }));
    await vi.advanceTimersByTimeAsync(599_000);
    expect(sent).toHaveLength(3);
    const { outcomes } = await inVirtualTime(collecting, 20_000);
    expect(countStatuses(outcomes)).toEqual({ created: 10 });
  });

  test('a pause of two hours → the refused chunk fails, and the next chunk is sent after an hour', async () => {
    const { client } = pausingService(7200);
    const run = client.trackers.createMany(makeInputs(10), ONE_BY_ONE);
    const { outcomes } = await inVirtualTime(collect(run), 3_620_000);
    expect(countStatuses(outcomes)).toEqual({ created: 9, error: 1 });
  });

  test.each([
    ['of the client', { retry: { maxRetryAfterMs: 5000 } }, {}],
    ['of the run', {}, { retry: { maxRetryAfterMs: 5000 } }],
  ])(
    'a pause longer than maxRetryAfterMs %s → the rest get outcome error at once',
    async (_, clientOptions, options) => {
      const { client } = pausingService(600, clientOptions);
      const run = client.trackers.createMany(makeInputs(10), { ...ONE_BY_ONE, ...options });
      const { outcomes } = await inVirtualTime(collect(run), 5000);
      expect(countStatuses(outcomes)).toEqual({ created: 1, error: 9 });
    },
  );
});

test('an abort at any moment around a response → an input that was created never ends as `error`', async () => {
  const seen = new Set<string>();
  for (let turns = 0; turns < 40; turns += 1) {
    const controller = new AbortController();
    const abortSoon = async () => {
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      controller.abort(new Error('enough'));
    };
    const hooks = { onResponse: () => void abortSoon() };
    const { statuses } = await createAll(created, makeInputs(1), { signal: controller.signal }, { hooks });
    for (const status of statuses) seen.add(status);
  }
  expect([...seen].toSorted()).toEqual(['created', 'unknown']);
});

import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { networkFailure } from '../support/make-client.ts';
import {
  bulkAnswer,
  bulkService,
  collect,
  collectInVirtualTime,
  countsOf,
  created,
  gate,
  inputsOf,
  itemOf,
  refused,
  settled,
  useVirtualTime,
} from './bulk-service.ts';

describe('a response with odd items', () => {
  const [first = { trackingNumber: '' }, second = { trackingNumber: '' }] = inputsOf(2);
  const answerOf = (...items: unknown[]) => ({ status: 201, body: { status: 'success', data: items } });

  test('a tracker that lacks everything but its id → created, with that id', async () => {
    const odd = { ...itemOf(first), tracker: { trackerId: 't-1' } };
    const { client } = bulkService(() => answerOf(odd, itemOf(second)));
    const { outcomes } = await collect(client.trackers.createMany([first, second]));
    expect(outcomes).toMatchObject([
      { status: 'created', tracker: { trackerId: 't-1' } },
      { status: 'created', tracker: itemOf(second).tracker },
    ]);
  });

  test('a tracker without an id → created, without a tracker', async () => {
    const { client } = bulkService(() => answerOf({ ...itemOf(first), tracker: {} }));
    const { outcomes } = await collect(client.trackers.createMany([first]));
    expect(outcomes[0]).toEqual({ index: 0, input: first, status: 'created' });
  });

  test('errors that are no list → the other items are not lost', async () => {
    const odd = { ...itemOf(first, 'error'), errors: 'taken' };
    const { client } = bulkService(() => answerOf(odd, itemOf(second)));
    const { outcomes } = await collect(client.trackers.createMany([first, second]));
    expect(outcomes).toMatchObject([{ status: 'error' }, { status: 'created' }]);
    expect(outcomes[0]).not.toHaveProperty('errors');
  });

  test('an error without a code, for the whole request → its status says what it was', async () => {
    const body = { status: 'error', data: null, error: { message: 'no' } };
    const { client } = bulkService(() => ({ status: 400, body }));
    const { outcomes } = await collect(client.trackers.createMany([first]));
    expect(outcomes[0]).toMatchObject({ status: 'error', errors: [{ code: 'http_400' }] });
  });
});

describe('a chunk that fails', () => {
  test.each([
    ['a reset', networkFailure('ECONNRESET'), 'unknown', 'connection_failed'],
    ['a refused connection', networkFailure('ECONNREFUSED'), 'error', 'connection_failed'],
    [
      '500',
      { status: 500, body: { errors: [{ code: 'processing_error' }], data: null } },
      'unknown',
      'processing_error',
    ],
    [
      'a gateway page with 502',
      { status: 502, body: '<html>', headers: { 'content-type': 'text/html' } },
      'unknown',
      'http_502',
    ],
    ['408', { status: 408, body: '' }, 'unknown', 'http_408'],
    [
      '429',
      { status: 429, body: 'slow down', headers: { 'content-type': 'text/plain' } },
      'error',
      'http_429',
    ],
    [
      '422',
      { status: 422, body: { errors: [{ code: 'validation_error', message: 'no' }], data: null } },
      'error',
      'validation_error',
    ],
    ['300', { status: 300, body: '' }, 'error', 'http_300'],
    ['400 in the bulk envelope', refused(400, 'parsing_error'), 'error', 'parsing_error'],
    [
      'the same with an empty list of items',
      { status: 400, body: { status: 'error', data: [], error: { code: 'parsing_error', message: 'no' } } },
      'error',
      'parsing_error',
    ],
    [
      'a success that is cut off',
      { status: 201, body: '{"status":"success","data":[{"item' },
      'unknown',
      'invalid_response',
    ],
    [
      'a success that tells nothing',
      { status: 201, body: { status: 'success', data: null } },
      'unknown',
      'not_in_response',
    ],
    ['a success that is an error', refused(201, 'processing_error'), 'unknown', 'processing_error'],
  ])('%s → its inputs say so, and the other chunks go on', async (_, failure, status, code) => {
    const { client, sent } = bulkService((inputs, request) => (request === 2 ? failure : created(inputs)));
    const run = client.trackers.createMany(inputsOf(6), { chunkSize: 2, concurrency: 1 });
    const { outcomes, error } = await collect(run);
    expect(error).toBeUndefined();
    expect(sent).toHaveLength(3);
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'created',
      'created',
      status,
      status,
      'created',
      'created',
    ]);
    expect(outcomes[2]?.errors?.[0]?.code).toBe(code);
  });

  test('an answer with items and an error of its own → the items count', async () => {
    const { client } = bulkService((inputs) => {
      const items = inputs.map((input) => itemOf(input));
      return { status: 207, body: { status: 'partial', data: items, error: { code: 'processing_error' } } };
    });
    const { outcomes } = await collect(client.trackers.createMany(inputsOf(2)));
    expect(countsOf(outcomes)).toEqual({ created: 2 });
  });

  test('a timeout → unknown', async () => {
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { client } = bulkService(() => new Promise(() => {}), { timeoutMs: 5000 });
    const collecting = collect(client.trackers.createMany(inputsOf(1)));
    await vi.advanceTimersByTimeAsync(5000);
    const { outcomes } = await collecting;
    expect(outcomes[0]).toMatchObject({ status: 'unknown', errors: [{ code: 'timeout' }] });
  });

  test.each([
    ['no key', { apiKey: () => '' }, 'request_failed'],
    ['a full queue', { rateLimit: { limits: { 'trackers.createBulk': 1 }, maxQueue: 0 } }, 'queue_full'],
  ])('%s → error, and that chunk is not sent', async (_, options, code) => {
    const { client, sent } = bulkService(undefined, options);
    const { outcomes } = await collect(client.trackers.createMany(inputsOf(2), { chunkSize: 1 }));
    expect(outcomes[1]).toMatchObject({ status: 'error', errors: [{ code }] });
    expect(sent.flat()).not.toContainEqual(outcomes[1]?.input);
  });
});

describe('a request that may have been carried out', () => {
  beforeEach(useVirtualTime);
  const reset = networkFailure('ECONNRESET');
  const refusedConnection = networkFailure('ECONNREFUSED');

  test.each([
    ['a reset', [reset], {}, 'unknown', 1],
    ['the same with retryAmbiguous', [reset], { retryAmbiguous: true }, 'created', 2],
    ['refused connections', [refusedConnection, refusedConnection], {}, 'created', 3],
    [
      'refused connections until the retries are used up',
      [refusedConnection, refusedConnection, refusedConnection],
      {},
      'error',
      3,
    ],
    [
      'retryAmbiguous, a reset and refused connections',
      [reset, refusedConnection, refusedConnection],
      { retryAmbiguous: true },
      'unknown',
      3,
    ],
    [
      'retryAmbiguous, a reset and a refusal',
      [reset, refused(400, 'processing_error')],
      { retryAmbiguous: true },
      'unknown',
      2,
    ],
    [
      'retryAmbiguous, a 429 and a refusal',
      [{ status: 429, body: '' }, refused(400, 'processing_error')],
      { retryAmbiguous: true },
      'error',
      2,
    ],
    [
      'retryAmbiguous, a reset and a used-up quota',
      [reset, refused(403, 'quota_limit_reached')],
      { retryAmbiguous: true },
      'unknown',
      2,
    ],
  ])(
    '%s, two retries → the input is as certain as the failures allow',
    async (_, failures, options, status, requests) => {
      const { client, sent } = bulkService((inputs, request) => failures[request - 1] ?? created(inputs), {
        retry: { retries: 2 },
      });
      const { outcomes } = await collectInVirtualTime(client.trackers.createMany(inputsOf(1), options));
      expect(outcomes[0]?.status).toBe(status);
      expect(sent).toHaveLength(requests);
    },
  );

  test('refused connections, and an abort before the next attempt → error, for it never left', async () => {
    const controller = new AbortController();
    const { client, sent } = bulkService(() => refusedConnection, { retry: undefined });
    const collecting = collect(client.trackers.createMany(inputsOf(1), { signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(10);
    controller.abort('enough');
    const { outcomes } = await collecting;
    expect(sent).toHaveLength(1);
    expect(outcomes[0]).toMatchObject({ status: 'error', errors: [{ code: 'aborted' }] });
  });

  test('no retries set → a request is repeated 20 times', async () => {
    const { client, sent } = bulkService(() => refusedConnection, { retry: undefined });
    await collectInVirtualTime(client.trackers.createMany(inputsOf(1)));
    expect(sent).toHaveLength(21);
  });
});

describe('failures that stop the run', () => {
  test.each([
    ['403 quota_limit_reached', refused(403, 'quota_limit_reached'), 'quota_limit_reached'],
    [
      '403 bulk_create_limit_exceeded',
      refused(403, 'bulk_create_limit_exceeded'),
      'bulk_create_limit_exceeded',
    ],
    [
      '401',
      { status: 401, body: { errors: [{ code: 'auth_invalid_api_key' }], data: null } },
      'auth_invalid_api_key',
    ],
    ['403 without a code', { status: 403, body: '' }, 'http_403'],
    [
      '422 no_active_subscription',
      { status: 422, body: { errors: [{ code: 'no_active_subscription' }], data: null } },
      'no_active_subscription',
    ],
  ])(
    '%s in mid-run → the rest come out as error with that code, and are not sent',
    async (_, failure, code) => {
      const { client, sent } = bulkService((inputs, request) => (request === 2 ? failure : created(inputs)));
      const inputs = [...inputsOf(8), { trackingNumber: 'x' }];
      const { outcomes, error } = await collect(
        client.trackers.createMany(inputs, { chunkSize: 2, concurrency: 1 }),
      );
      expect(error).toBeUndefined();
      expect(sent).toHaveLength(2);
      expect(outcomes.map(({ status, errors }) => [status, errors?.[0]?.code])).toEqual([
        ['created', undefined],
        ['created', undefined],
        ...Array.from({ length: 6 }, () => ['error', code]),
        ['invalid', 'validation_error'],
      ]);
    },
  );

  test('a chunk that was sent before the stop → keeps its own result', async () => {
    const second = gate();
    const { client } = bulkService(async (inputs, request) => {
      if (request === 1) return refused(403, 'quota_limit_reached');
      await second.opened;
      return bulkAnswer(inputs.map((input) => itemOf(input, 'existing')));
    });
    const collecting = collect(client.trackers.createMany(inputsOf(6), { chunkSize: 2, concurrency: 2 }));
    await settled();
    second.open();
    expect((await collecting).outcomes.map(({ status }) => status)).toEqual([
      'error',
      'error',
      'existing',
      'existing',
      'error',
      'error',
    ]);
  });

  test('a chunk that was sent before the stop and breaks off → is unknown', async () => {
    const second = gate();
    const { client } = bulkService(async (_, request) => {
      if (request === 1) return refused(403, 'quota_limit_reached');
      await second.opened;
      return networkFailure('ECONNRESET');
    });
    const collecting = collect(client.trackers.createMany(inputsOf(2), { chunkSize: 1 }));
    await settled();
    second.open();
    expect((await collecting).outcomes.map(({ status }) => status)).toEqual(['error', 'unknown']);
  });

  test('a chunk that waits for the rate limit at the stop → is not sent, and comes out with the code', async () => {
    const { client, sent } = bulkService(() => refused(403, 'quota_limit_reached'), {
      rateLimit: { limits: { 'trackers.createBulk': 1 } },
    });
    const { outcomes } = await collect(
      client.trackers.createMany(inputsOf(6), { chunkSize: 2, concurrency: 3 }),
    );
    expect(sent).toHaveLength(1);
    expect(outcomes.map(({ status, errors }) => [status, errors?.[0]?.code])).toEqual(
      Array.from({ length: 6 }, () => ['error', 'quota_limit_reached']),
    );
  });
});

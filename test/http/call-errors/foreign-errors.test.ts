import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ApiError, ConnectionError, QueueFullError, TrackingError } from '../../../src/errors.ts';
import type { Limiter } from '../../../src/limiter/limiter.ts';
import { API_KEY, catchRejection, makeClient, networkFailure } from '../../support/make-client.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

const details = {
  status: 404,
  errors: [{ code: 'tracker_not_found' }],
  requestId: 'theirs',
  method: 'GET',
  path: '/theirs',
  headers: new Headers(),
  body: undefined,
  attempts: 7,
  retryAfterMs: undefined,
};
/** Errors of this package that a caller can hold, such as those of another call. */
const MAKE_ERROR: Record<string, () => TrackingError> = {
  ApiError: () => new ApiError('theirs', details),
  ConnectionError: () => new ConnectionError('theirs', { neverSent: true }),
};
const NAMES = Object.keys(MAKE_ERROR);

function makeError(name: string): TrackingError {
  const error = MAKE_ERROR[name]?.() ?? new TrackingError(name);
  // V8 formats the stack when it is read.
  void error.stack;
  return error;
}

/** Copies all fields of an error, also those that are not enumerable. */
function readFields(error: Error): Record<string, unknown> {
  return Object.fromEntries(
    Object.getOwnPropertyNames(error).map((name) => [name, Reflect.get(error, name)]),
  );
}

describe.each(NAMES)('an abort whose reason is an error of another call, %s', (name) => {
  test('while a call waits → the same object, with the same fields, and a log line without them', async () => {
    const reason = makeError(name);
    const before = readFields(reason);
    const controller = new AbortController();
    const lines: unknown[] = [];
    const log = (_line: string, fields: unknown) => lines.push(fields);
    const logger = { debug: log, info: log, warn: log, error: log };
    const { client } = makeClient(() => new Promise<Response>(() => {}), { logger, logLevel: 'debug' });
    const rejection = catchRejection(client.couriers.list({ signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1_000);
    controller.abort(reason);
    expect(await rejection).toBe(reason);
    expect(readFields(reason)).toEqual(before);
    expect(lines.at(-1)).not.toMatchObject({ requestId: 'theirs' });
  });

  test('while a chunk of createMany is under way → its inputs may have trackers', async () => {
    const controller = new AbortController();
    const { client } = makeClient(() => new Promise<Response>(() => {}));
    const run = client.trackers.createMany([{ trackingNumber: 'LA680658838NL' }], {
      signal: controller.signal,
    });
    const first = run.next();
    await vi.advanceTimersByTimeAsync(10);
    controller.abort(makeError(name));
    expect((await first).value).toMatchObject({ status: 'unknown', errors: [{ code: 'aborted' }] });
  });
});

describe('an error that a callback of the caller throws', () => {
  test.each(NAMES)('`intervalMs` of a poll, %s → the same object, with the same fields', async (name) => {
    const error = makeError(name);
    const before = readFields(error);
    const { client } = makeClient();
    const intervalMs = () => {
      throw error;
    };
    const polls = client.trackers.poll('t', { intervalMs });
    expect(await catchRejection(polls.next())).toBe(error);
    expect(readFields(error)).toEqual(before);
  });

  test.each(NAMES)(
    '`fetch`, %s → a ConnectionError of the call, and the caller keeps the object',
    async (name) => {
      const error = makeError(name);
      const before = readFields(error);
      const { client } = makeClient(error, { retry: false });
      expect(await catchRejection(client.couriers.list())).toMatchObject({
        name: 'ConnectionError',
        callId: expect.any(String),
        endpoint: 'couriers.list',
        neverSent: false,
      });
      expect(readFields(error)).toEqual(before);
    },
  );

  test.each(NAMES)('`apiKey`, %s → a ConfigurationError of the call', async (name) => {
    const error = makeError(name);
    const before = readFields(error);
    const apiKey = () => {
      throw error;
    };
    const { client } = makeClient({}, { apiKey });
    expect(await catchRejection(client.couriers.list())).toMatchObject({
      name: 'ConfigurationError',
      callId: expect.any(String),
      option: 'apiKey',
    });
    expect(readFields(error)).toEqual(before);
  });
});

describe('an error of the limiter', () => {
  const refusing = (error: unknown): Limiter => ({
    spansProcesses: false,
    maxQueue: Number.POSITIVE_INFINITY,
    acquire: () => Promise.reject(error),
    snapshot: () => ({ limit: 1, inUse: 0, queued: 0, pausedUntil: null }),
  });

  test.each([
    ['a full queue', new QueueFullError('full'), {}],
    [
      'Redis that is down',
      new ConnectionError('down', { cause: new Error('socket'), neverSent: true }),
      { neverSent: true, cause: { message: 'socket' } },
    ],
  ])(
    '%s → an error of the call with the same message; the limiter keeps its own',
    async (_what, error, facts) => {
      const before = readFields(error);
      const { client } = makeClient({}, { rateLimit: undefined, limiter: refusing(error), retry: false });
      const rejections = await Promise.all([
        catchRejection(client.couriers.list()),
        catchRejection(client.trackers.get('t')),
      ]);
      expect(rejections).toMatchObject([
        { name: error.name, message: error.message, endpoint: 'couriers.list', attempts: 0, ...facts },
        { name: error.name, message: error.message, endpoint: 'trackers.get', attempts: 0, ...facts },
      ]);
      expect(readFields(error)).toEqual(before);
    },
  );
});

test('errors that hooks freeze → the call goes on and rejects with the last one', async () => {
  const seen: unknown[] = [];
  const freeze = ({ error }: { readonly error: unknown }) => void seen.push(Object.freeze(error));
  const { client } = makeClient(networkFailure('ECONNRESET'), {
    retry: { retries: 1 },
    hooks: { onError: freeze, onRetry: freeze, onDone: freeze },
  });
  const rejection = catchRejection(client.couriers.list());
  await vi.advanceTimersByTimeAsync(10_000);
  const error = await rejection;
  expect(error).toMatchObject({ name: 'ConnectionError', attempts: 2 });
  expect(seen).toMatchObject([{ attempts: 1 }, { attempts: 1 }, { attempts: 2 }, { attempts: 2 }]);
  expect(seen.at(-1)).toBe(error);
});

test('a key that the function returns and that is refused → the option and the rule, without the key', async () => {
  const { client } = makeClient({}, { apiKey: () => `${API_KEY} ` + 'x y' });
  expect(await catchRejection(client.couriers.list())).toMatchObject({
    option: 'apiKey',
    rule: expect.stringMatching(/^to return visible ASCII characters .*, got a string of \d+ characters$/),
  });
});

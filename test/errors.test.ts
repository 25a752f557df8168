import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { TrackingClient } from '../src/client.ts';
import * as errors from '../src/errors.ts';
import {
  ApiError,
  type ApiErrorDetails,
  ConfigurationError,
  ConnectionError,
  InvalidRequestError,
  isTrackingError,
  NotFoundError,
  RateLimitError,
  RequestValidationError,
  ResponseValidationError,
  ShippingDateOutdatedError,
  TrackingError,
} from '../src/errors.ts';
import type { TrackingClientOptions } from '../src/options.ts';
import { API_KEY, BASE_URL, catchRejection, makeClient } from './support/make-client.ts';

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('Expected an error');
}

const details: ApiErrorDetails = {
  status: 429,
  errors: [{ code: 'slow_down', message: 'm' }],
  requestId: 'req-1',
  method: 'GET',
  path: '/couriers',
  headers: new Headers({ 'x-secret': 'header-value' }),
  body: { long: 'body-value' },
  attempts: 2,
  retryAfterMs: 1_000,
};

describe('classes', () => {
  test('every exported class → has a kind of its own, which is its name', () => {
    const classes = Object.entries(errors).filter(([name]) => /^[A-Z].*Error$/.test(name));
    expect(classes).toHaveLength(21);
    for (const [name, Class] of classes) expect(Class).toHaveProperty('kind', name);
  });

  test.each([null, undefined, 5, 'text', {}, new Error('x'), new TypeError('x')])(
    '%s → neither `instanceof` nor `isTrackingError` takes it for a TrackingError',
    (value) => {
      expect(value instanceof TrackingError).toBe(false);
      expect(isTrackingError(value)).toBe(false);
    },
  );
});

describe('JSON', () => {
  test('an ApiError with a cause → name, message and its fields, without cause, headers and body', () => {
    const error = new ApiError('message', details, { cause: new Error('inner') });
    expect(error.cause).toEqual(new Error('inner'));
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'ApiError',
      message: 'message',
      status: 429,
      code: 'slow_down',
      errors: [{ code: 'slow_down', message: 'm' }],
      requestId: 'req-1',
      method: 'GET',
      path: '/couriers',
      attempts: 2,
      retryAfterMs: 1_000,
    });
    expect(error.headers.get('x-secret')).toBe('header-value');
    expect(error.body).toEqual({ long: 'body-value' });
    expect(inspect(error)).not.toMatch(/header-value|body-value/);
  });

  test('a ResponseValidationError → issues, status and request id, no body', () => {
    const issue = { path: [], code: 'invalid_body', message: 'm' };
    const error = new ResponseValidationError('message', {
      issues: [issue],
      body: 'body-value',
      status: 200,
      requestId: 'req-1',
    });
    expect(error.body).toBe('body-value');
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'ResponseValidationError',
      message: 'message',
      issues: [issue],
      status: 200,
      requestId: 'req-1',
    });
  });
});

describe('RequestValidationError', () => {
  const outdated = { path: ['shippingDate'], code: 'shipping_date_outdated', message: 'too old' };
  const tooBig = { path: ['title'], code: 'too_big', message: 'too long' };

  test.each([
    [[outdated, tooBig], 'too old; too long', 'validation_error'],
    [[outdated, outdated], 'too old; too old', 'shipping_date_outdated'],
    [[outdated, tooBig, tooBig], 'too old; too long; too long', 'validation_error'],
    [
      Array.from({ length: 100 }, () => tooBig),
      'too long; too long; too long (and 97 more problems)',
      'validation_error',
    ],
  ])(
    'many issues → three of them in the message, and the error code of the service',
    (issues, message, code) => {
      expect(new RequestValidationError(issues)).toMatchObject({ message, code, issues });
    },
  );

  test('a date that is too old → RequestValidationError with the code, nothing is sent', async () => {
    const { client, requests } = makeClient();
    const input = { trackingNumber: 'LA680658838NL', shippingDate: '2001-01-01T00:00' };
    const error = await catchRejection(client.trackers.create(input));
    expect(error).toBeInstanceOf(RequestValidationError);
    expect(error).not.toBeInstanceOf(ShippingDateOutdatedError);
    expect(isTrackingError(error, 'shipping_date_outdated')).toBe(true);
    expect(requests).toHaveLength(0);
  });
});

describe('the option of a ConfigurationError', () => {
  const valid = { baseUrl: BASE_URL, apiKey: API_KEY };

  test.each<[options: object, option: string, rule: string | RegExp]>([
    [{ ...valid, timeoutMs: -1 }, 'timeoutMs', /^to be a number of milliseconds .*, got -1$/],
    [{ ...valid, retry: { retries: 0.5 } }, 'retry.retries', 'to be a whole number of at least 0, got 0.5'],
    [{ ...valid, hooks: [{}, { onDone: 5 }] }, 'hooks[1].onDone', 'to be a function, got 5'],
    [{ ...valid, headers: { 'x y': 'z' } }, 'headers["x y"]', /^to have a header name of .*, got 'x y'$/],
    [
      { ...valid, headers: { host: 'z' } },
      'headers.host',
      /^to be left out .*, got a string of 1 character$/,
    ],
    [{ ...valid, logger: {} }, 'logger.debug', 'to be a function, got undefined'],
    [{ ...valid, retires: 1 }, 'retires', 'is unknown'],
    [{ ...valid, apiKey: 5 }, 'apiKey', 'to be a non-empty string, got 5'],
    [{ apiKey: API_KEY, baseUrl: undefined }, 'baseUrl', 'is missing'],
    [
      { apiKey: API_KEY, baseUrl: 'host' },
      'baseUrl',
      /^\(a string of 4 characters\) is not an https:\/\/ URL$/,
    ],
    [{ apiKey: API_KEY, baseUrl: 'http://a.test' }, 'baseUrl', /^begins with http:\/\/, so /],
  ])('%j → option and rule as in the message', (options, option, rule) => {
    vi.stubEnv('TRACKING_BASE_URL', undefined);
    const error = catchError(() => new TrackingClient(options));
    expect(error).toMatchObject({ name: 'ConfigurationError', option, rule: expect.stringMatching(rule) });
    const { message, rule: full } = Object(error);
    if (full !== 'is unknown') expect(message).toContain(`\`${option}\` ${full}`);
    // The message says the same.
    expect(inspect(error)).not.toContain('rule:');
  });

  test('not an object → the option is `options`', () => {
    const options: unknown = 5;
    const error = catchError(() => new TrackingClient(options as TrackingClientOptions));
    expect(error).toMatchObject({ option: 'options', rule: 'to be an object, got a number' });
  });

  test('an unknown option whose name may be a secret → no option', () => {
    const error = catchError(() => new TrackingClient({ ...valid, ['x'.repeat(41)]: 1 }));
    expect(error).toMatchObject({ name: 'ConfigurationError', option: undefined, rule: undefined });
  });

  test('a name that contains the key → masked', () => {
    const error = catchError(() => new TrackingClient({ ...valid, headers: { [`${API_KEY} x`]: '' } }));
    expect(error).toMatchObject({ name: 'ConfigurationError', option: 'headers["[redacted] x"]' });
  });
});

test.each<[input: object, field: readonly unknown[], rule: string]>([
  [{ courierCode: ['a', 'b', 'c', 'd'] }, ['courierCode'], 'to have at most 3 codes, got 4'],
  [{ courierCode: ['a', ''] }, ['courierCode', 1], 'to be a non-empty string, got an empty string'],
  [{ trackingNumber: '1' }, ['trackingNumber'], "to have 5 to 50 characters, got '1'"],
  [{ recipient: { email: 5 } }, ['recipient', 'email'], 'to be a string, got a number'],
])('an input of %j → the issue has the field and the rule of the message', async (input, path, rule) => {
  const { client } = makeClient();
  const error = await catchRejection(client.trackers.create({ trackingNumber: 'LA680658838NL', ...input }));
  expect(error).toMatchObject({ issues: [{ path, rule, message: expect.stringContaining(`\` ${rule}`) }] });
});

describe('isTrackingError', () => {
  test('an error and a code → true for that code only', () => {
    const error = new ApiError('x', details);
    expect(isTrackingError(error, 'slow_down' as string)).toBe(true);
    expect(isTrackingError(error, 'tracker_not_found')).toBe(false);
    expect(isTrackingError(new ConfigurationError('x'), 'tracker_not_found')).toBe(false);
  });

  test('a foreign object with the brand in another shape → false', () => {
    expect(isTrackingError({ [Symbol.for('tracking-client.error')]: 'TrackingError' })).toBe(false);
  });
});

describe('a subclass of the user', () => {
  class Gone extends NotFoundError {
    readonly isGone = true;
  }

  test('an instance of the subclass → an instance of every parent, with the name of the parent', () => {
    const error = new Gone('x', details);
    for (const Parent of [Gone, NotFoundError, ApiError, TrackingError, Error])
      expect(error).toBeInstanceOf(Parent);
    expect(isTrackingError(error)).toBe(true);
    expect(error.name).toBe('NotFoundError');
  });

  test('an instance of the parent → not an instance of the subclass or of a sibling of the parent', () => {
    const error: unknown = new NotFoundError('x', details);
    expect(error instanceof Gone).toBe(false);
    expect(error instanceof RateLimitError).toBe(false);
  });
});

describe('two copies of the package', () => {
  // Reloaded modules are a second copy of the classes, like the CommonJS build beside the ESM build.
  const load = async () => {
    vi.resetModules();
    const copy = await import('../src/errors.ts');
    expect(copy.TrackingError).not.toBe(TrackingError);
    expect(copy.NotFoundError).not.toBe(NotFoundError);
    return copy;
  };

  test('Error.stackTraceLimit 0 → the stack is the name and the message alone', async () => {
    const limit = Error.stackTraceLimit;
    const { client } = makeClient({ status: 500 }, { retry: false });
    Error.stackTraceLimit = 0;
    const error = Object(
      await catchRejection(client.couriers.list()).finally(() => (Error.stackTraceLimit = limit)),
    );
    expect(error.stack).toBe(`${error.name}: ${error.message}`);
  });

  test('a ConnectionError without `isPermanent` → may succeed later', () => {
    expect(new ConnectionError('x', { neverSent: true }).isPermanent).toBe(false);
  });

  test('an error of the other copy → isTrackingError of this copy returns true', async () => {
    const copy = await load();
    expect(isTrackingError(new copy.NotFoundError('x', details), 'slow_down' as string)).toBe(true);
    expect(copy.isTrackingError(new ConnectionError('x', { neverSent: true }))).toBe(true);
  });

  test("an error of the other copy → an instance of this copy's class and its parents", async () => {
    const copy = await load();
    const error: unknown = new copy.ShippingDateOutdatedError('x', details);
    expect(error instanceof ShippingDateOutdatedError).toBe(true);
    expect(error instanceof InvalidRequestError).toBe(true);
    expect(error instanceof ApiError).toBe(true);
    expect(error instanceof NotFoundError).toBe(false);
  });
});

test('the name of an error → can be set and redefined, like that of any error', () => {
  const error = new TrackingError('m');
  error.name = 'MyError';
  expect(error.name).toBe('MyError');
  Object.defineProperty(error, 'name', { value: 'OtherError' });
  expect(String(error)).toBe('OtherError: m');
  expect(() => Object.defineProperty(error, 'name', { enumerable: true })).not.toThrow();
});

import fc from 'fast-check';
import { describe, expect, type Mock, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import { ConfigurationError } from '../../src/errors.ts';
import type { AttemptInfo, CallInfo, Hooks } from '../../src/observability/hooks.ts';
import { telemetryHooks } from '../../src/opentelemetry/index.ts';
import type { TrackingClientOptions } from '../../src/options.ts';
import { TRACKER } from '../contract/support/samples.ts';
import { BASE_URL, catchRejection, makeClient, networkFailure, type Step } from '../support/make-client.ts';
import { settled } from '../support/settled.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

const GOT = { body: { data: { tracker: TRACKER } }, headers: { 'x-request-id': 'req-1' } };
const UUID = expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
const CALL = {
  callId: UUID,
  endpoint: 'trackers.get',
  method: 'GET',
  path: '/trackers/{trackerId}',
  baseUrl: BASE_URL,
};
const ATTEMPT = { ...CALL, queuedMs: 0 };

const HOOKS = [
  'onStart',
  'onRequest',
  'onResponse',
  'onError',
  'onRetry',
  'onRateLimit',
  'onMismatch',
  'onDone',
] as const;
type HookName = (typeof HOOKS)[number];

const spies = () => Object.fromEntries(HOOKS.map((name) => [name, vi.fn()])) as Record<HookName, Mock>;

async function get(script: Step | Step[], hooks: Hooks | readonly Hooks[], options = {}) {
  const { client } = makeClient(script, { hooks, ...options });
  return await settleInVirtualTime(() => client.trackers.get('secret-id').catch((error: unknown) => error));
}

const RESET = networkFailure('ECONNRESET');
const slowDown = (seconds: string) => ({ status: 429, headers: { 'retry-after': seconds } });

/** Makes a call and returns the names of the called hooks, in order, each with its attempt. */
async function tell(script: Step | Step[], options: TrackingClientOptions): Promise<string> {
  const told: string[] = [];
  const note = (name: HookName) => (info: CallInfo | AttemptInfo) => {
    told.push('attempt' in info ? `${name} ${info.attempt}` : name);
  };
  await get(script, Object.fromEntries(HOOKS.map((name) => [name, note(name)])), options);
  return told.join(', ').replaceAll(/on([A-Z])/g, (_, letter) => letter.toLowerCase());
}

describe('the hooks of a call, in order', () => {
  test.each<[what: string, told: string, script: Step | Step[], options: TrackingClientOptions]>([
    ['a success', 'request 1, response 1', GOT, {}],
    [
      'a 429, then a success',
      'request 1, response 1, rateLimit 1, retry 1, request 2, response 2',
      [slowDown('0.01'), GOT],
      {},
    ],
    ['no response, then a success', 'request 1, error 1, retry 1, request 2, response 2', [RESET, GOT], {}],
    ['a 429 that is not repeated', 'request 1, response 1, rateLimit 1', slowDown('7'), { retry: false }],
    ['no response, not repeated', 'request 1, error 1', RESET, { retry: false }],
    ['a 404', 'request 1, response 1', { status: 404 }, {}],
    [
      'a 503 twice',
      'request 1, response 1, retry 1, request 2, response 2',
      { status: 503 },
      { retry: { retries: 1 } },
    ],
    [
      'a Retry-After longer than totalTimeoutMs',
      'request 1, response 1',
      { ...slowDown('30'), status: 503 },
      { totalTimeoutMs: 5_000 },
    ],
  ])('%s → start, %s, done', async (_what, told, script, options) => {
    expect(await tell(script, options)).toBe(`start, ${told}, done`);
  });

  test('an API key function that rejects → start, done', async () => {
    expect(await tell(GOT, { apiKey: () => Promise.reject(new Error('vault is sealed')) })).toBe(
      'start, done',
    );
  });
});

describe('arguments of hooks', () => {
  const REQUEST = { ...ATTEMPT, attempt: 1, tokensLeft: undefined };
  const DONE = { ...CALL, queuedMs: 0, durationMs: expect.any(Number) };

  test('a success after a 503 → call, attempts, statuses, durations, request id and error', async () => {
    const hooks = spies();
    await get([{ status: 503 }, GOT], hooks);
    const error = expect.objectContaining({ name: 'ServerError', status: 503 });
    expect(hooks.onStart).toHaveBeenCalledExactlyOnceWith(CALL);
    expect(hooks.onRequest.mock.calls).toEqual([[REQUEST], [{ ...REQUEST, attempt: 2 }]]);
    expect(hooks.onRetry).toHaveBeenCalledExactlyOnceWith({
      ...ATTEMPT,
      attempt: 1,
      error,
      retryAfterMs: undefined,
      waitMs: expect.any(Number),
    });
    expect(hooks.onResponse.mock.calls).toEqual([
      [{ ...REQUEST, status: 503, durationMs: expect.any(Number), requestId: undefined }],
      [{ ...REQUEST, attempt: 2, status: 200, durationMs: expect.any(Number), requestId: 'req-1' }],
    ]);
    expect(hooks.onDone).toHaveBeenCalledExactlyOnceWith({ ...DONE, error: undefined, attempts: 2 });
  });

  test('a 429 → onRateLimit and onRetry get its delay', async () => {
    const hooks = spies();
    await get([slowDown('0.01'), GOT], hooks);
    expect(hooks.onRateLimit).toHaveBeenCalledExactlyOnceWith({ ...ATTEMPT, attempt: 1, delayMs: 10 });
    expect(hooks.onRetry).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        retryAfterMs: 10,
        error: expect.objectContaining({ name: 'RateLimitError' }),
      }),
    );
  });

  test('no response → onError and onDone get the error of the call', async () => {
    const hooks = spies();
    const error = await get(RESET, hooks, { retry: false });
    expect(hooks.onError).toHaveBeenCalledExactlyOnceWith({
      ...REQUEST,
      error,
      durationMs: expect.any(Number),
    });
    expect(hooks.onDone).toHaveBeenCalledExactlyOnceWith({ ...DONE, error, attempts: 1 });
  });

  test('a client with a limiter → onRequest and onResponse get the number of free tokens', async () => {
    const hooks = spies();
    await get(GOT, hooks, { rateLimit: {} });
    expect(hooks.onRequest).toHaveBeenCalledWith(expect.objectContaining({ tokensLeft: 9 }));
    expect(hooks.onResponse).toHaveBeenCalledWith(expect.objectContaining({ tokensLeft: 9 }));
  });
});

describe('a call that is aborted', () => {
  test('an abort by onResponse after a failure → onRetry is not called', async () => {
    const controller = new AbortController();
    const hooks = { ...spies(), onResponse: () => controller.abort('enough') };
    const { client } = makeClient({ status: 503 }, { hooks });
    expect(await catchRejection(client.trackers.get('t', { signal: controller.signal }))).toBe('enough');
    expect(hooks.onRetry).not.toHaveBeenCalled();
  });

  test('an abort by the hook onRequest → onError, and nothing is sent', async () => {
    const controller = new AbortController();
    const hooks = { ...spies(), onRequest: () => controller.abort('enough') };
    const { client, requests } = makeClient(GOT, { hooks });
    expect(await catchRejection(client.trackers.get('t', { signal: controller.signal }))).toBe('enough');
    expect(requests).toHaveLength(0);
    expect(hooks.onError).toHaveBeenCalledOnce();
    expect(hooks.onDone).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ attempts: 0 }));
  });
});

test('a response after 50 ms, then none for 70 ms → the time each attempt took', async () => {
  const hooks = spies();
  const late = () =>
    new Promise<Response>((resolve) => setTimeout(() => resolve(new Response('', { status: 503 })), 50));
  await get([late, () => new Promise(() => {})], hooks, { timeoutMs: 70, retry: { retries: 1 } });
  expect(hooks.onResponse).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ durationMs: 50 }));
  expect(hooks.onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ durationMs: 70 }));
});

describe('time in the queue', () => {
  test('a second call at a limit of 1 → onRequest, onResponse and onDone get its time in the queue', async () => {
    vi.useFakeTimers();
    const hooks = spies();
    const rateLimit = { limits: { 'trackers.get': 1 } };
    const { client } = makeClient(GOT, { hooks, rateLimit });
    await client.trackers.get('t');
    const call = client.trackers.get('t');
    await vi.advanceTimersByTimeAsync(1_100);
    await call;
    for (const hook of [hooks.onRequest, hooks.onResponse, hooks.onDone])
      expect(hook.mock.calls.map(([info]) => info.queuedMs)).toEqual([0, 1_010]);
  });

  test('a call that times out in the queue → no onRequest, and onDone gets its time in the queue', async () => {
    vi.useFakeTimers();
    const hooks = spies();
    const rateLimit = { limits: { 'trackers.get': 1 } };
    const { client } = makeClient(GOT, { hooks, rateLimit });
    await client.trackers.get('t');
    const call = catchRejection(client.trackers.get('t', { totalTimeoutMs: 300 }));
    await vi.advanceTimersByTimeAsync(400);
    const error = await call;
    expect(hooks.onRequest).toHaveBeenCalledOnce();
    expect(hooks.onDone).toHaveBeenLastCalledWith(
      expect.objectContaining({ error, attempts: 0, queuedMs: 300, durationMs: 300 }),
    );
  });
});

describe('any course of a call', () => {
  const failures: Step[] = [
    GOT,
    { status: 404 },
    { status: 503 },
    { status: 429, headers: { 'retry-after': '0' } },
    { body: '<html>', headers: { 'content-type': 'text/html' } },
    networkFailure('ECONNRESET'),
    networkFailure('ECONNREFUSED'),
    () => new Promise(() => {}),
    () => new Response(new ReadableStream({ pull: (stream) => stream.error(new Error('broken')) })),
    () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })),
  ];
  const course = fc.record({
    script: fc.array(fc.constantFrom(...failures), { minLength: 1, maxLength: 5 }),
    abortAfter: fc.option(fc.nat({ max: 12 })),
    abortIn: fc.option(fc.constantFrom(...HOOKS)),
    retries: fc.nat({ max: 3 }),
  });

  test('any responses and aborts → one onStart, one onDone, and one onResponse or onError after each onRequest', async () => {
    await fc.assert(
      fc.asyncProperty(course, async ({ script, abortAfter, abortIn, retries }) => {
        const controller = new AbortController();
        const told: string[] = [];
        const note = (name: HookName) => () => {
          told.push(name);
          if (name === abortIn || told.length === abortAfter) controller.abort('enough');
        };
        const hooks = Object.fromEntries(HOOKS.map((name) => [name, note(name)]));
        const { client } = makeClient(script, { hooks, retry: { retries } });
        const options = { signal: controller.signal, timeoutMs: 5 };
        const error = await settleInVirtualTime(() =>
          client.trackers.get('t', options).then(
            () => undefined,
            (reason: unknown) => reason,
          ),
        );
        // A late response could still call a hook.
        await settled();
        expect(told[0]).toBe('onStart');
        expect(told.at(-1)).toBe('onDone');
        expect(told.filter((name) => name === 'onStart' || name === 'onDone')).toHaveLength(2);
        const pairs = told.filter((name) => ['onRequest', 'onResponse', 'onError'].includes(name)).join(' ');
        expect(pairs).toMatch(/^(onRequest (onResponse|onError) ?)*$/);
        if (error === undefined) expect(pairs).toMatch(/onResponse$/);
      }),
      { numRuns: 100 },
    );
  });
});

describe('hooks that fail', () => {
  const boom = () => {
    throw new Error('boom');
  };
  const reject = () => Promise.reject(new Error('boom'));

  test.each([
    ['throws', boom],
    ['rejects', reject],
  ])('every hook %s → the call succeeds, and a warning names each hook', async (_how, hook) => {
    const warn = vi.fn();
    const logger = { debug: vi.fn(), info: vi.fn(), warn, error: vi.fn() };
    const hooks = { onRequest: hook, onResponse: hook, onDone: hook };
    expect(await get(GOT, hooks, { logger, logLevel: 'warn' })).toEqual(TRACKER);
    await Promise.resolve();
    const warnings = Object.keys(hooks).map(
      (name) => `[tracking-client] Your callback \`${name}\` threw an error, which the client ignores: boom`,
    );
    expect(warn.mock.calls).toEqual(warnings.map((warning) => [warning]));
  });
});

test('a list of two objects → each is called, in order, also after a hook that throws', async () => {
  const told: string[] = [];
  const first = {
    onRequest: () => {
      told.push('first');
      throw new Error('boom');
    },
  };
  const second = { onRequest: () => told.push('second'), onDone: () => told.push('done') };
  const hooks = [first, telemetryHooks(), second];
  expect(await get(GOT, hooks, { logLevel: 'silent' })).toEqual(TRACKER);
  expect(told).toEqual(['first', 'second', 'done']);
});

test.each([
  [
    'an input that breaks a rule',
    (client: TrackingClient) => client.trackers.create({ trackingNumber: 'x' }),
  ],
  ['an impossible id', (client: TrackingClient) => client.trackers.get('..')],
  ['an option that breaks a rule', (client: TrackingClient) => client.couriers.list({ timeoutMs: -1 })],
  ['a path outside the base URL', (client: TrackingClient) => client.request({ method: 'GET', path: '//x' })],
])('a call with %s → no hook is called, because the call never began', async (_what, call) => {
  const hook = vi.fn();
  const hooks = { onStart: hook, onRequest: hook, onError: hook, onRetry: hook, onDone: hook };
  const { client, requests } = makeClient({ body: { data: [] } }, { hooks });
  await catchRejection(call(client));
  expect(hook).not.toHaveBeenCalled();
  expect(requests).toHaveLength(0);
});

test('a hook that changes its argument → the next hook gets the true values', async () => {
  const seen: unknown[] = [];
  const spoil = (info: object) => void Object.assign(info, { endpoint: 'spoilt', status: 0 });
  const note = ({ endpoint }: CallInfo) => void seen.push(endpoint);
  const hooks = [
    { onStart: spoil, onResponse: spoil, onDone: spoil },
    { onStart: note, onResponse: note, onDone: note },
  ];
  const { client } = makeClient(GOT, { hooks });
  await client.trackers.get('t');
  expect(seen).toEqual(['trackers.get', 'trackers.get', 'trackers.get']);
});

describe('hooks that are refused', () => {
  class Misspelt {
    onRespons() {}
  }
  class MisspeltWrapper {
    aroundAttemp() {}
  }

  test.each([
    ['an unknown hook', { onRespons: () => {} }, 'Unknown option `hooks.onRespons`; known options: onStart'],
    ['a misspelt method of a class', new Misspelt(), 'Unknown option `hooks.onRespons`'],
    ['another field of a plain object', { request: () => {} }, 'Unknown option `hooks.request`'],
    ['an unknown hook in a list', [{}, { onEnd: () => {} }], 'Unknown option `hooks[1].onEnd`'],
    [
      'a name of 500 characters',
      { ['x'.repeat(500)]: () => {} },
      'Unknown option with a string of 500 characters as its name',
    ],
    ['a hook that is no function', { onDone: 5 }, 'Expected `hooks.onDone` to be a function'],
    [
      'an aroundAttempt that is no function',
      [{}, { aroundAttempt: 'span' }],
      'Expected `hooks[1].aroundAttempt` to be a function, got a string of 4 characters',
    ],
    ['a misspelt aroundAttempt of a class', new MisspeltWrapper(), 'Unknown option `hooks.aroundAttemp`'],
    ['a list with null', [null], 'Expected `hooks[0]` to be an object'],
    ['text', 'all', 'Expected `hooks` to be an object'],
  ])('%s → ConfigurationError that names it', (_what, hooks, message) => {
    // Sound for a test of what callers without types pass.
    const options = { hooks: hooks as Hooks };
    expect(() => makeClient(GOT, options)).toThrow(ConfigurationError);
    expect(() => makeClient(GOT, options)).toThrow(message);
  });
});

test('hooks that are an instance of a class → its methods are called on the instance', async () => {
  class Counter implements Hooks {
    requests = 0;
    onRequest() {
      this.requests += 1;
    }
  }
  const counter = new Counter();
  await get(GOT, counter);
  expect(counter.requests).toBe(1);
});

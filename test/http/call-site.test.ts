import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import type { RequestOptions } from '../../src/options.ts';
import { catchRejection, makeClient, networkFailure, type Step } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
const FILE = 'call-site.test.ts';
const SOURCE = fileURLToPath(new URL('../../src/', import.meta.url));
const input = { trackingNumber: 'LA680658838NL' };
const never: Step = () => new Promise<Response>(() => {});

/** Each function has a name, because the stack shows it beside its line. */
const METHODS = {
  create: function callCreate(client: TrackingClient, options?: RequestOptions) {
    return client.trackers.create(input, options);
  },
  request: function callRequest(client: TrackingClient, options?: RequestOptions) {
    return client.request({ method: 'GET', path: '/reports', ...options });
  },
  withResponse: function callWithResponse(client: TrackingClient, options?: RequestOptions) {
    return client.trackers.get('t', options).withResponse();
  },
};
const EVERY_METHOD = Object.entries(METHODS);

/** Returns the first stack frame outside the package. */
function findForeignFrame(error: unknown): string | undefined {
  const frames = Object(error)
    .stack.split('\n')
    .filter((line: string) => /^ {4}at /.test(line));
  return frames.find((line: string) => !line.includes(SOURCE));
}

const FAILURES: [name: string, step: Step][] = [
  ['NotFoundError', { status: 404 }],
  ['ServerError', { status: 500 }],
  ['ConnectionError', networkFailure('ECONNRESET')],
  ['TimeoutError', never],
  ['ResponseValidationError', { body: '<p>' }],
];

describe.each(EVERY_METHOD)('%s', (_method, call) => {
  test.each(FAILURES)('%s → its stack begins with the line of the call', async (name, step) => {
    const { client } = makeClient(step, { retry: false });
    const error = await settleInVirtualTime(() => catchRejection(call(client, { timeoutMs: 50 })));
    expect(error).toMatchObject({ name });
    expect(findForeignFrame(error)).toMatch(new RegExp(`\\b${call.name} .*${FILE}:\\d+:\\d+`));
  });

  test('an error after a second attempt → a stack with the line of the call', async () => {
    const script: Step[] = [{ status: 429, headers: { 'retry-after': '1' } }, { status: 404 }];
    const error = await settleInVirtualTime(() => catchRejection(call(makeClient(script).client)));
    expect(error).toMatchObject({ name: 'NotFoundError', attempts: 2 });
    expect(findForeignFrame(error)).toContain(call.name);
  });

  test('an invalid option → a stack with the line of the call', async () => {
    const error = await catchRejection(call(makeClient().client, { timeoutMs: -1 }));
    expect(error).toMatchObject({ name: 'ConfigurationError' });
    expect(findForeignFrame(error)).toContain(call.name);
  });
});

test('the reason of an abort → keeps its own stack', async () => {
  const reason = new RangeError('enough');
  const { stack } = reason;
  const error = await catchRejection(
    METHODS.create(makeClient().client, { signal: AbortSignal.abort(reason) }),
  );
  expect(error).toBe(reason);
  expect(reason.stack).toBe(stack);
});

test('an input that breaks a rule → RequestValidationError whose stack has the line of the call', async () => {
  const callWrongly = (client: TrackingClient) => client.trackers.get('..').withResponse();
  const error = await catchRejection(callWrongly(makeClient().client));
  expect(error).toMatchObject({ name: 'RequestValidationError' });
  expect(findForeignFrame(error)).toMatch(new RegExp(`\\bcallWrongly .*${FILE}:\\d+:\\d+`));
});

test('the stack of an error → begins with its name and message, as Node prints them', async () => {
  const error = await catchRejection(makeClient({ status: 404 }).client.trackers.get('t'));
  const { name, message, stack } = Object(error);
  expect(stack.startsWith(`${name}: ${message}\n    at `)).toBe(true);
});

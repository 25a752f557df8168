import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/index.ts';
import { makeClient, rejectionOf } from '../support/make-client.ts';
import {
  BROKEN,
  NOT_FOUND,
  NOT_READY,
  pass,
  polledService,
  read,
  record,
  results,
} from './polled-service.ts';

/** The one place that calls a method in each test, so that stacks can be searched for its name. */
function callFromHere<T>(client: TrackingClient, call: (client: TrackingClient) => T): T {
  return call(client);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? '') : String(error);
}

const POLL = { intervalMs: 1000 };

describe('the stack of an error names the line that called the method', () => {
  test('poll, a tracker that is not found', async () => {
    const { client } = polledService(() => NOT_FOUND);
    const reading = read(callFromHere(client, ({ trackers }) => trackers.poll('t', POLL)));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name: 'NotFoundError' });
    expect(stackOf(reading.end?.error)).toContain('callFromHere');
  });

  test('poll, too many errors in a row → so does the cause', async () => {
    const { client } = polledService(() => BROKEN);
    const options = { ...POLL, maxConsecutiveErrors: 2 };
    const reading = read(callFromHere(client, ({ trackers }) => trackers.poll('t', options)));
    await pass(2000);
    const { error } = reading.end ?? {};
    expect(stackOf(error)).toMatch(/^TrackingError: Polling `t` failed 2 times in a row/);
    expect(stackOf(error)).toContain('callFromHere');
    expect(stackOf(error instanceof Error ? error.cause : undefined)).toContain('callFromHere');
  });

  test.each([
    ['a tracker that is not found', () => NOT_FOUND, ['t'], 'NotFoundError'],
    ['an id that cannot be one', () => results([]), ['..'], 'RequestValidationError'],
  ])('pollMany, %s → in its update', async (_, reply, ids, name) => {
    const { client } = polledService(reply);
    const reading = read(callFromHere(client, ({ trackers }) => trackers.pollMany(ids, POLL)));
    await pass(1000);
    expect(reading.items[0]?.error).toMatchObject({ name });
    expect(stackOf(reading.items[0]?.error)).toContain('callFromHere');
  });

  test('waitUntilStopped, out of time', async () => {
    const { client } = polledService(() => results([]));
    const options = { ...POLL, maxDurationMs: 1500 };
    const rejection = rejectionOf(
      callFromHere(client, ({ trackers }) => trackers.waitUntilStopped('t', options)),
    );
    await pass(1500);
    expect(await rejection).toMatchObject({ name: 'TimeoutError' });
    expect(stackOf(await rejection)).toContain('callFromHere');
  });

  test('waitUntilStopped, a tracker that was given up', async () => {
    const { client } = polledService((_, id) => (id === 'trackers' ? record(false) : NOT_READY));
    const rejection = rejectionOf(
      callFromHere(client, ({ trackers }) => trackers.waitUntilStopped('t', POLL)),
    );
    await pass(2000);
    expect(await rejection).toMatchObject({ name: 'ResultsNotReadyError' });
    expect(stackOf(await rejection)).toContain('callFromHere');
  });

  test('listAll, its second page fails', async () => {
    const tracker = { trackerId: 'a', trackingNumber: 'LA680658838NL', isTracked: true };
    const { client } = makeClient([{ body: { data: { trackers: [tracker] } } }, { status: 404 }]);
    const trackers = callFromHere(client, (caller) => caller.trackers.listAll({ limit: 1 }));
    await trackers.next();
    const error = await rejectionOf(trackers.next());
    expect(error).toMatchObject({ name: 'NotFoundError' });
    expect(stackOf(error)).toContain('callFromHere');
  });
});

test('an abort → the reason of the signal keeps its own stack', async () => {
  const { client } = polledService(() => results([]));
  const controller = new AbortController();
  const options = { ...POLL, signal: controller.signal };
  const reading = read(callFromHere(client, ({ trackers }) => trackers.pollMany(['t'], options)));
  await pass(500);
  const reason = new Error('enough');
  const { stack } = reason;
  controller.abort(reason);
  await pass(0);
  expect(reading.end?.error).toBe(reason);
  expect(reason.stack).toBe(stack);
});

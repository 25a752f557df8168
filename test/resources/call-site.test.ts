import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { TrackingClient } from '../../src/client.ts';
import type { TrackersResource } from '../../src/resources.ts';
import {
  BROKEN,
  NOT_FOUND,
  NOT_READY,
  pass,
  polledService,
  read,
  record,
  results,
} from '../polling/polled-service.ts';
import { catchRejection, makeClient } from '../support/make-client.ts';
import { settleInVirtualTime } from '../support/virtual-time.ts';

type Call<T> = (trackers: TrackersResource) => T;

/** The one place that calls a method in each test, so that stacks can be searched for its name. */
function callFromHere<T>({ trackers }: { trackers: TrackersResource }, call: Call<T>): T {
  return call(trackers);
}

const fromHere = { stack: expect.stringContaining('callFromHere') };
const fail = () => {
  throw new Error('mine');
};
const POLL = { intervalMs: 1000, maxConsecutiveErrors: 2 };

describe('the stack of an error of one call', () => {
  const SOURCE = fileURLToPath(new URL('../../src/', import.meta.url));
  const METHODS = {
    callCreate: (client: TrackingClient, options?: object) =>
      client.trackers.create({ trackingNumber: 'LA680658838NL' }, options),
    callRequest: (client: TrackingClient, options?: object) =>
      client.request({ method: 'GET', path: '/reports', ...options }),
    callWithResponse: (client: TrackingClient, options?: object) =>
      client.trackers.get('t', options).withResponse(),
  };

  test.each(Object.entries(METHODS))(
    '%s, any failure → begins with the line of the call',
    async (name, call) => {
      const script = [{ status: 429, headers: { 'retry-after': '0' } }, { status: 404 }];
      const { client } = makeClient(script);
      const failed = await settleInVirtualTime(() => catchRejection(call(client)));
      const invalid = await catchRejection(call(client, { timeoutMs: -1 }));
      expect([failed, invalid]).toMatchObject([{ name: 'NotFoundError' }, { name: 'ConfigurationError' }]);
      for (const error of [failed, invalid]) {
        const { message, stack } = Object(error);
        expect(stack.startsWith(`${Object(error).name}: ${message}\n    at `)).toBe(true);
        const foreignFrame = stack
          .split('\n    at ')
          .slice(1)
          .find((line: string) => !line.includes(SOURCE));
        expect(foreignFrame).toMatch(new RegExp(`\\b${name} .*call-site.test.ts:\\d+:\\d+`));
      }
    },
  );

  test('the reason of an abort → keeps its own stack', async () => {
    const reason = new RangeError('enough');
    const { stack } = reason;
    const call = METHODS.callCreate(makeClient().client, { signal: AbortSignal.abort(reason) });
    expect(await catchRejection(call)).toBe(reason);
    expect(reason.stack).toBe(stack);
  });
});

describe('the stack of an error of pollOnce', () => {
  test.each([
    ['a tracker that is not found', 't', {}, 'NotFoundError'],
    ['an impossible id', '..', {}, 'RequestValidationError'],
    ['an invalid option', 't', { timeoutMs: -1 }, 'ConfigurationError'],
  ])('%s → the line of the call', async (_, id, options, name) => {
    const { client } = polledService(() => NOT_FOUND);
    const call: Call<Promise<unknown>> = (trackers) => trackers.pollOnce(id, options);
    expect(await catchRejection(callFromHere(client, call))).toMatchObject({ name, ...fromHere });
  });
});

describe('the stack of an error of a stream', () => {
  test('poll, a tracker that is not found → the line of the call', async () => {
    const { client } = polledService(() => NOT_FOUND);
    const reading = read(callFromHere(client, (trackers) => trackers.poll('t', POLL)));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name: 'NotFoundError', ...fromHere });
  });

  test('poll, too many errors in a row → the line of the call, also in the cause', async () => {
    const { client } = polledService(() => BROKEN);
    const reading = read(callFromHere(client, (trackers) => trackers.poll('t', POLL)));
    await pass(2000);
    expect(reading.end?.error).toMatchObject({ name: 'TrackingError', ...fromHere, cause: fromHere });
    const message = /^TrackingError: Polling `t` has ended after 2 errors in a row/;
    expect(reading.end?.error).toMatchObject({ stack: expect.stringMatching(message) });
  });

  test.each([
    ['a tracker that is not found', 't', POLL, 'NotFoundError'],
    ['an impossible id', '..', POLL, 'RequestValidationError'],
    ['an interval function that throws', 't', { intervalMs: fail }, 'TrackingError'],
    ['an interval function that returns 5', 't', { intervalMs: () => 5 }, 'ConfigurationError'],
  ])('pollMany, %s → an update whose error has the line of the call', async (_, id, options, name) => {
    const { client } = polledService(() => NOT_FOUND);
    const reading = read(callFromHere(client, (trackers) => trackers.pollMany([id], options)));
    await pass(1000);
    expect(reading.items[0]?.error).toMatchObject({ name, ...fromHere });
  });

  test('resultsMany, a tracker that is not found and an impossible id → items whose errors have the line of the call', async () => {
    const { client } = polledService(() => NOT_FOUND);
    const reading = read(callFromHere(client, (trackers) => trackers.resultsMany(['t', '..'])));
    await pass(0);
    expect(reading.items.map(({ error }) => error)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: 'NotFoundError', ...fromHere }),
        expect.objectContaining({ name: 'RequestValidationError', ...fromHere }),
      ]),
    );
  });

  test('resultsMany, a failure of the account and invalid options → the line of the call', async () => {
    const { client } = polledService(() => ({ status: 401 }));
    const reading = read(callFromHere(client, (trackers) => trackers.resultsMany(['t'])));
    await pass(0);
    expect(reading.end?.error).toMatchObject({ name: 'AuthenticationError', ...fromHere });
    const call = () => callFromHere(client, (trackers) => trackers.resultsMany(['t'], { concurrency: 0 }));
    expect(call).toThrow(expect.objectContaining(fromHere));
  });

  test('poll, an `until` that returns 5 → the line of the call', async () => {
    const { client } = polledService(() => results(['a']));
    // @ts-expect-error -- `until` must return true or false
    const reading = read(callFromHere(client, (trackers) => trackers.poll('t', { ...POLL, until: () => 5 })));
    await pass(1000);
    expect(reading.end?.error).toMatchObject({ name: 'ConfigurationError', ...fromHere });
  });

  test.each([
    ['a timeout', results([]), 'TimeoutError'],
    ['a tracker that stopped without results', NOT_READY, 'ResultsNotReadyError'],
    ['a tracker that stopped with results without events', results([], false), 'ResultsNotReadyError'],
  ])('waitUntilStopped, %s → the line of the call', async (_, response, name) => {
    const { client } = polledService(() => response, { respondWithRecord: () => record(false) });
    const wait: Call<Promise<unknown>> = (trackers) =>
      trackers.waitUntilStopped('t', { ...POLL, maxDurationMs: 2500 });
    const rejection = catchRejection(callFromHere(client, wait));
    await pass(2500);
    expect(await rejection).toMatchObject({ name, ...fromHere });
  });

  test('listAll, an error on the second page → the line of the call', async () => {
    const tracker = { trackerId: 'a', trackingNumber: 'LA680658838NL', isTracked: true };
    const { client } = makeClient([{ body: { data: { trackers: [tracker] } } }, { status: 404 }]);
    const list = callFromHere(client, (trackers) => trackers.listAll({ limit: 1 }));
    await list.next();
    expect(await catchRejection(list.next())).toMatchObject({ name: 'NotFoundError', ...fromHere });
  });

  test.each([
    ['an option of the call', { signal: null }],
    ['an unknown field', { Limit: 5 }],
    ['a value that breaks its rule', { limit: 'many' }],
  ])('list and listAll, %s in the query → the line of the call', async (_what, query: object) => {
    const { client } = makeClient();
    const list = callFromHere(client, (trackers) => trackers.list(query));
    expect(await catchRejection(list)).toMatchObject(fromHere);
    const all = callFromHere(client, (trackers) => trackers.listAll(query));
    expect(await catchRejection(all.next())).toMatchObject(fromHere);
  });

  test('createMany, invalid options → the line of the call', () => {
    const { client } = makeClient({ status: 500 });
    const call = () => callFromHere(client, (trackers) => trackers.createMany([], { chunkSize: 0 }));
    expect(call).toThrow(expect.objectContaining(fromHere));
  });
});

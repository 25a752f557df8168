import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test, vi } from 'vitest';
import type { TrackerInput } from '../../../src/index.ts';
import { bulkService, collect, createAll, created, makeInputs, settled } from '../bulk-service.ts';

const never = () => new Promise<never>(() => {});
const END = { done: true, value: undefined };

/** Endless inputs, and how many of them were read. */
function countInputs() {
  const counted = { taken: 0, inputs };
  function* inputs() {
    for (;;) {
      counted.taken += 1;
      yield* makeInputs(1, counted.taken);
    }
  }
  return counted;
}

function collectGarbage(): void {
  // Only a new context sees a flag that is set after the start.
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
}

/** A source whose parts a test can replace. */
function makeSource(iterator: {
  next: () => PromiseLike<IteratorResult<TrackerInput>>;
  return?: () => Promise<IteratorResult<TrackerInput>>;
}): AsyncIterable<TrackerInput> {
  // An async iterator may give any promise.
  return { [Symbol.asyncIterator]: () => iterator as AsyncIterator<TrackerInput> };
}

describe('reading of inputs', () => {
  test('a run that is not iterated → no input is read, and nothing is sent', async () => {
    const { client, sent } = bulkService();
    const counted = countInputs();
    client.trackers.createMany(counted.inputs());
    await settled();
    expect(counted.taken).toBe(0);
    expect(sent).toEqual([]);
  });

  test('a generator that reuses one object and its array → each row is sent as it was when it was read', async () => {
    function* reuse() {
      const row = { trackingNumber: '', courierCode: ['none'] };
      for (const [trackingNumber, courier] of [
        ['lp00000000x', 'us-post'],
        ['lp00000001x', 'fr-post'],
      ] as const) {
        row.trackingNumber = trackingNumber;
        row.courierCode[0] = courier;
        yield row;
      }
    }
    const { sent, statuses } = await createAll(created, reuse());
    expect(sent).toEqual([
      [
        { trackingNumber: 'lp00000000x', courierCode: ['us-post'] },
        { trackingNumber: 'lp00000001x', courierCode: ['fr-post'] },
      ],
    ]);
    expect(statuses).toEqual(['created', 'created']);
  });

  test('a consumer that stops reading → only the chunks under way are read and sent', async () => {
    const { client, sent } = bulkService();
    const counted = countInputs();
    const run = client.trackers.createMany(counted.inputs(), { chunkSize: 10, concurrency: 3 });
    await run.next();
    await settled();
    expect(sent).toHaveLength(3);
    expect(counted.taken).toBe(30);
    await run.return();
  });

  test('the outcomes of a chunk are read → the next chunk is sent', async () => {
    const { client, sent } = bulkService();
    const run = client.trackers.createMany(makeInputs(9), { chunkSize: 3, concurrency: 1 });
    for (let outcome = 0; outcome < 3; outcome += 1) await run.next();
    expect(sent).toHaveLength(1);
    await run.next();
    expect(sent).toHaveLength(2);
    await run.return();
  });

  test('inputs whose outcomes were read → garbage, so a run of any length needs the same memory', async () => {
    const inputs: WeakRef<TrackerInput>[] = [];
    function* produce() {
      for (const input of makeInputs(50)) {
        // A copy, because `makeInputs` returns all inputs in one list.
        const copy = { ...input };
        inputs.push(new WeakRef(copy));
        yield copy;
      }
    }
    const run = bulkService().client.trackers.createMany(produce(), { chunkSize: 1, concurrency: 1 });
    for (let count = 0; count < 40; count += 1) await run.next();
    await settled();
    collectGarbage();
    // The run may hold the chunk that it works on.
    expect(inputs.slice(0, 38).filter((input) => input.deref() !== undefined)).toEqual([]);
    await run.return();
  });

  test('a slow source → ready outcomes do not wait for the source', async () => {
    const { client } = bulkService();
    async function* inputs() {
      yield* makeInputs(2);
      await never();
    }
    const run = client.trackers.createMany(inputs(), { chunkSize: 2 });
    expect(await run.next()).toMatchObject({ value: { index: 0 } });
    expect(await run.next()).toMatchObject({ value: { index: 1 } });
    await run.return();
  });

  test('promises of another realm, as under some test runners → awaited like any other promise', async () => {
    const results = [`{ done: false, value: { trackingNumber: 'LA680658838NL' } }`, '{ done: true }'];
    const next = () => runInNewContext(`Promise.resolve(${results.shift()})`);
    expect((await createAll(created, makeSource({ next }))).statuses).toEqual(['created']);
  });
});

describe('leaving the loop', () => {
  test('return() before the first read → nothing is read or sent', async () => {
    const { client, sent } = bulkService();
    const next = vi.fn();
    const run = client.trackers.createMany(makeSource({ next }));
    await run.return();
    expect(await run.next()).toEqual(END);
    expect(next).not.toHaveBeenCalled();
    expect(sent).toEqual([]);
  });

  test('throw(), or the end of a block with await using → the run ends', async () => {
    const { client } = bulkService();
    const run = client.trackers.createMany(makeInputs(3));
    await expect(run.throw(new Error('mine'))).rejects.toThrow('mine');
    expect(await run.next()).toEqual(END);
    const other = client.trackers.createMany(makeInputs(3));
    {
      await using stream = other;
      await stream.next();
    }
    expect(await other.next()).toEqual(END);
  });

  test('break while the source waits → return() of the source is called once', async () => {
    const returned = vi.fn(async () => ({ done: true as const, value: undefined }));
    const run = bulkService().client.trackers.createMany(makeSource({ next: never, return: returned }));
    const pending = run.next();
    await run.return();
    expect(await pending).toEqual(END);
    expect(returned).toHaveBeenCalledOnce();
  });

  const throws = () => {
    throw new Error('mine');
  };

  test.each([
    ['rejects', async () => throws()],
    ['throws', throws],
  ])('a source whose return() %s → break does not', async (_, fail) => {
    const next = async () => ({ done: false, value: { trackingNumber: 'LA680658838NL' } });
    const run = bulkService().client.trackers.createMany(makeSource({ next, return: fail }), {
      chunkSize: 1,
    });
    await run.next();
    await expect(run.return()).resolves.toEqual(END);
  });
});

describe('an abort', () => {
  /** Aborts while one chunk of one input is under way and the others wait for the rate limit. */
  async function abortWhileChunksWait(count: number) {
    const controller = new AbortController();
    const rateLimit = { limits: { 'trackers.createBulk': 1 } };
    const options = { chunkSize: 1, concurrency: count, signal: controller.signal };
    const run = createAll(never, makeInputs(count), options, { rateLimit });
    await settled();
    controller.abort(new Error('enough'));
    return run;
  }

  test('an abort while a chunk is under way and others wait → the messages say which inputs may have trackers', async () => {
    const { outcomes } = await abortWhileChunksWait(2);
    expect(outcomes.map(({ errors }) => errors?.[0]?.message)).toEqual([
      expect.stringMatching(/may or may not exist/),
      'Aborted before the service accepted this input',
    ]);
  });

  test('an abort while the source waits → outcome error for the inputs read so far, then the reason', async () => {
    const controller = new AbortController();
    async function* inputs() {
      yield* makeInputs(2);
      await never();
    }
    const run = createAll(created, inputs(), { signal: controller.signal });
    await settled();
    controller.abort('a reason that is no error');
    const statuses = ['error', 'error'];
    expect(await run).toMatchObject({ statuses, error: 'a reason that is no error', sent: [] });
  });

  test('an abort before the start → rejects with the reason, and no input is read', async () => {
    const counted = countInputs();
    const signal = AbortSignal.abort('enough');
    const { outcomes, error } = await createAll(created, counted.inputs(), { signal });
    expect(outcomes).toEqual([]);
    expect(error).toBe('enough');
    expect(counted.taken).toBe(0);
  });

  test('100 streams on one signal → one listener, and none once they are read to their end', async () => {
    const { signal } = new AbortController();
    const { client } = bulkService();
    const runs = Array.from({ length: 100 }, () => client.trackers.createMany(makeInputs(1), { signal }));
    for (const run of runs) await run.next();
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    for (const run of runs) await collect(run);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});

import { describe, expect, test, vi } from 'vitest';
import { bulkService, collect, countsOf, created, inputsOf, settled } from './bulk-service.ts';

describe('a source that throws in the middle', () => {
  function* broken(count: number) {
    yield* inputsOf(count);
    throw new Error('line 151 is no row');
  }

  test('150 inputs, then an error → what was read is sent and reported, then the error surfaces', async () => {
    const { client, sent } = bulkService();
    const run = client.trackers.createMany(broken(150));
    const { outcomes, error } = await collect(run);
    expect(sent.map((chunk) => chunk.length)).toEqual([100, 50]);
    expect(countsOf(outcomes)).toEqual({ created: 150 });
    expect(error).toEqual(new Error('line 151 is no row'));
    expect(run.summary()).toMatchObject({ total: 150, created: 150 });
  });
});

describe('an abort', () => {
  test('in mid-run → what was read comes out, then the reason; nothing more is read or sent', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    let taken = 0;
    function* inputs() {
      for (;;) {
        taken += 1;
        yield* inputsOf(1, taken);
      }
    }
    const { client, sent } = bulkService((chunk, request) =>
      request === 1 ? created(chunk) : new Promise(() => {}),
    );
    const run = client.trackers.createMany(inputs(), {
      chunkSize: 2,
      concurrency: 2,
      signal: controller.signal,
    });
    const collecting = collect(run);
    await settled();
    controller.abort(reason);
    const { outcomes, error } = await collecting;
    expect(error).toBe(reason);
    expect(outcomes.map(({ index, status }) => [index, status])).toEqual([
      [0, 'created'],
      [1, 'created'],
      [2, 'unknown'],
      [3, 'unknown'],
      [4, 'unknown'],
      [5, 'unknown'],
    ]);
    expect(sent).toHaveLength(3);
    expect(taken).toBe(6);
  });

  test('when every input was read and is under way → what it brings is unknown, then the reason', async () => {
    const controller = new AbortController();
    const { client } = bulkService(() => new Promise(() => {}));
    const collecting = collect(client.trackers.createMany(inputsOf(2), { signal: controller.signal }));
    await settled();
    controller.abort('enough');
    const { outcomes, error } = await collecting;
    expect(countsOf(outcomes)).toEqual({ unknown: 2 });
    expect(error).toBe('enough');
  });

  test('while chunks wait for the rate limit → those are errors, for they never left', async () => {
    const controller = new AbortController();
    const { client, sent } = bulkService(() => new Promise(() => {}), {
      rateLimit: { limits: { 'trackers.createBulk': 1 } },
    });
    const run = client.trackers.createMany(inputsOf(30), { chunkSize: 10, signal: controller.signal });
    const collecting = collect(run);
    await settled();
    controller.abort(new Error('enough'));
    const { outcomes } = await collecting;
    expect(sent).toHaveLength(1);
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...Array.from({ length: 10 }, () => 'unknown'),
      ...Array.from({ length: 20 }, () => 'error'),
    ]);
    expect(outcomes[10]?.errors?.[0]?.code).toBe('aborted');
  });

  test('while the source waits → what was read so far is an error, then the reason', async () => {
    const controller = new AbortController();
    async function* inputs() {
      yield* inputsOf(3);
      await new Promise(() => {});
    }
    const { client, sent } = bulkService();
    const collecting = collect(client.trackers.createMany(inputs(), { signal: controller.signal }));
    await settled();
    controller.abort('a reason that is no error');
    const { outcomes, error } = await collecting;
    expect(countsOf(outcomes)).toEqual({ error: 3 });
    expect(error).toBe('a reason that is no error');
    expect(sent).toEqual([]);
  });

  test('before the start → the reason, and no input is taken', async () => {
    const taken = vi.fn();
    function* inputs() {
      taken();
      yield* inputsOf(1);
    }
    const { client } = bulkService();
    const signal = AbortSignal.abort(new Error('enough'));
    const { outcomes, error } = await collect(client.trackers.createMany(inputs(), { signal }));
    expect(outcomes).toEqual([]);
    expect(error).toEqual(new Error('enough'));
    expect(taken).not.toHaveBeenCalled();
  });

  test('a reader that leaves while requests are under way → they are given up', async () => {
    const signals: AbortSignal[] = [];
    const { client } = bulkService(undefined, {
      fetch: async (_, init) => {
        if (init?.signal) signals.push(init.signal);
        return await new Promise(() => {});
      },
    });
    const run = client.trackers.createMany(inputsOf(4), { chunkSize: 2 });
    void run.next();
    await settled();
    await run.return();
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  });
});

import { describe, expect, test, vi } from 'vitest';
import type { BulkSummary } from '../../src/index.ts';
import { bulkAnswer, bulkService, collect, countsOf, inputsOf, itemOf, settled } from './bulk-service.ts';

describe('how fast inputs are read', () => {
  test('not read → no input is taken, and nothing is sent', async () => {
    const { client, sent } = bulkService();
    const taken = vi.fn();
    function* inputs() {
      taken();
      yield* inputsOf(1);
    }
    client.trackers.createMany(inputs());
    await settled();
    expect(taken).not.toHaveBeenCalled();
    expect(sent).toEqual([]);
  });

  test('a reader that stops reading → no more than the chunks under way were read and sent', async () => {
    const { client, sent } = bulkService();
    let taken = 0;
    function* inputs() {
      for (;;) {
        yield* inputsOf(1, taken);
        taken += 1;
      }
    }
    const run = client.trackers.createMany(inputs(), { chunkSize: 10, concurrency: 3 });
    await run.next();
    await settled();
    expect(sent).toHaveLength(3);
    expect(taken).toBeLessThanOrEqual(30);
    await run.return();
  });

  test('the outcomes of a chunk are read → the next chunk is sent in its place', async () => {
    const { client, sent } = bulkService();
    const run = client.trackers.createMany(inputsOf(9), { chunkSize: 3, concurrency: 1 });
    for (let outcome = 0; outcome < 3; outcome += 1) await run.next();
    expect(sent).toHaveLength(1);
    await run.next();
    expect(sent).toHaveLength(2);
    await run.return();
  });

  test('a slow source → outcomes that are ready do not wait for it', async () => {
    const { client } = bulkService();
    async function* inputs() {
      yield* inputsOf(2);
      await new Promise(() => {});
    }
    const run = client.trackers.createMany(inputs(), { chunkSize: 2 });
    expect(await run.next()).toMatchObject({ value: { index: 0 } });
    expect(await run.next()).toMatchObject({ value: { index: 1 } });
    await run.return();
  });

  test('break → nothing more is sent, and the source is told', async () => {
    const { client, sent } = bulkService();
    const returned = vi.fn();
    function* inputs() {
      try {
        yield* inputsOf(1000);
      } finally {
        returned();
      }
    }
    for await (const _ of client.trackers.createMany(inputs(), { chunkSize: 10, concurrency: 1 })) break;
    await settled();
    expect(sent).toHaveLength(1);
    expect(returned).toHaveBeenCalledOnce();
  });
});

describe('summary and progress', () => {
  test('after the end → summary() counts every input', async () => {
    const statuses = ['created', 'existing', 'error'];
    const { client } = bulkService((inputs) =>
      bulkAnswer(
        inputs.slice(0, 3).map((input, index) => itemOf(input, statuses[index])),
        207,
      ),
    );
    const run = client.trackers.createMany([...inputsOf(4), { trackingNumber: 'x' }]);
    expect(run.summary()).toEqual({ total: 0, created: 0, existing: 0, error: 0, invalid: 0, unknown: 0 });
    await collect(run);
    expect(run.summary()).toEqual({ total: 5, created: 1, existing: 1, error: 1, invalid: 1, unknown: 1 });
  });

  test('onProgress → is told after every chunk', async () => {
    const { client } = bulkService();
    const told: BulkSummary[] = [];
    const run = client.trackers.createMany(inputsOf(250), { onProgress: (summary) => told.push(summary) });
    await collect(run);
    expect(told.map(({ total, created }) => [total, created])).toEqual([
      [100, 100],
      [200, 200],
      [250, 250],
    ]);
  });

  test.each<[string, () => void]>([
    [
      'throws',
      () => {
        throw new Error('mine');
      },
    ],
    ['rejects', async () => Promise.reject(new Error('mine'))],
  ])('onProgress %s → a warning, and the run goes on', async (_, onProgress) => {
    const warn = vi.fn();
    const logger = { debug() {}, info() {}, warn, error() {} };
    const { client } = bulkService(undefined, { logger, logLevel: 'warn' });
    const { outcomes } = await collect(client.trackers.createMany(inputsOf(150), { onProgress }));
    await settled();
    expect(countsOf(outcomes)).toEqual({ created: 150 });
    expect(warn).toHaveBeenCalledTimes(2);
  });
});

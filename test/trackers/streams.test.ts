import { getEventListeners } from 'node:events';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import type { TrackerInput } from '../../src/index.ts';
import { bulkService, collect, countsOf, inputsOf } from './bulk-service.ts';

/** A source whose parts a test can replace. */
function sourceOf(iterator: {
  next: () => PromiseLike<IteratorResult<TrackerInput>>;
  return?: () => Promise<IteratorResult<TrackerInput>>;
}): AsyncIterable<TrackerInput> {
  // An async iterator may give any promise.
  return { [Symbol.asyncIterator]: () => iterator as AsyncIterator<TrackerInput> };
}

test('read to its end → every further read is the end', async () => {
  const { client } = bulkService();
  const run = client.trackers.createMany(inputsOf(1));
  await collect(run);
  expect(await run.next()).toEqual({ done: true, value: undefined });
});

test('return() before the first read → nothing is read or sent', async () => {
  const { client, sent } = bulkService();
  const next = vi.fn();
  const run = client.trackers.createMany(sourceOf({ next }));
  await run.return();
  expect(await run.next()).toEqual({ done: true, value: undefined });
  expect(next).not.toHaveBeenCalled();
  expect(sent).toEqual([]);
});

test('throw() → leaves the stream and rejects with that error', async () => {
  const { client } = bulkService();
  const run = client.trackers.createMany(inputsOf(3));
  await run.next();
  await expect(run.throw(new Error('mine'))).rejects.toThrow('mine');
  expect(await run.next()).toEqual({ done: true, value: undefined });
});

test('await using → the end of the block leaves the stream', async () => {
  const { client } = bulkService();
  const run = client.trackers.createMany(inputsOf(3));
  {
    await using stream = run;
    await stream.next();
  }
  expect(await run.next()).toEqual({ done: true, value: undefined });
});

test('100 streams on one signal → one listener, and none once they are read to their end', async () => {
  const { signal } = new AbortController();
  const { client } = bulkService();
  const runs = Array.from({ length: 100 }, () => client.trackers.createMany(inputsOf(1), { signal }));
  for (const run of runs) await run.next();
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  for (const run of runs) await collect(run);
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('promises of another realm, as under some test runners → are awaited like any other', async () => {
  const results = [`{ done: false, value: { trackingNumber: 'LA680658838NL' } }`, '{ done: true }'];
  const next = () => runInNewContext(`Promise.resolve(${results.shift()})`);
  const { client } = bulkService();
  expect(countsOf((await collect(client.trackers.createMany(sourceOf({ next })))).outcomes)).toEqual({
    created: 1,
  });
});

test('left while the source waits → the source is told once', async () => {
  const returned = vi.fn(async () => ({ done: true as const, value: undefined }));
  const { client } = bulkService();
  const run = client.trackers.createMany(sourceOf({ next: () => new Promise(() => {}), return: returned }));
  const pending = run.next();
  await run.return();
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(returned).toHaveBeenCalledOnce();
});

test.each([
  ['rejects', async () => Promise.reject(new Error('late'))],
  [
    'throws',
    () => {
      throw new Error('at once');
    },
  ],
])('a source whose return() %s → leaving does not', async (_, fail) => {
  const { client } = bulkService();
  const [value = { trackingNumber: '' }] = inputsOf(1);
  const run = client.trackers.createMany(
    sourceOf({ next: async () => ({ done: false, value }), return: fail }),
    { chunkSize: 1, concurrency: 1 },
  );
  await run.next();
  await expect(run.return()).resolves.toEqual({ done: true, value: undefined });
});

import { expect, test } from 'vitest';
import { batched } from '../../src/webhooks/dedupe-store.ts';
import { deferred } from './support.ts';

/** A statement that writes down what it is sent, and ends when the test says so. */
function makeStatement() {
  const sent: (readonly string[])[] = [];
  const ends: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  const ask = batched<string, string>(async (items) => {
    sent.push(items);
    const end = deferred();
    ends.push(end);
    await end.promise;
    return items.map((item) => item.toUpperCase());
  });
  return { ask, sent, ends };
}

test('a call alone → sent at once', async () => {
  const { ask, sent, ends } = makeStatement();
  const result = ask(['a', 'b']);
  expect(sent).toEqual([['a', 'b']]);
  ends[0]?.resolve();
  expect(await result).toEqual(['A', 'B']);
});

test('calls while a statement is under way → share the next one, each gets its own results', async () => {
  const { ask, sent, ends } = makeStatement();
  const results = [ask(['a']), ask(['b', 'c']), ask(['d'])];
  expect(sent).toEqual([['a']]);
  ends[0]?.resolve();
  await results[0];
  await Promise.resolve();
  expect(sent).toEqual([['a'], ['b', 'c', 'd']]);
  ends[1]?.resolve();
  expect(await Promise.all(results)).toEqual([['A'], ['B', 'C'], ['D']]);
});

test('a shared statement that fails → fails for all in it, and the next one is sent', async () => {
  const { ask, sent, ends } = makeStatement();
  const first = ask(['a']);
  const shared = [ask(['b']), ask(['c'])];
  ends[0]?.resolve();
  await first;
  await Promise.resolve();
  const failure = new Error('connection lost');
  ends[1]?.reject(failure);
  const outcomes = await Promise.allSettled(shared);
  expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason)).toEqual([
    failure,
    failure,
  ]);
  const next = ask(['d']);
  expect(sent).toHaveLength(3);
  ends[2]?.resolve();
  expect(await next).toEqual(['D']);
});

test('more than 1,000 items wait → several statements; a call is never split', async () => {
  const { ask, sent, ends } = makeStatement();
  const items = (count: number) => Array.from({ length: count }, (_, index) => `e${index}`);
  const results = [ask(['a']), ask(items(600)), ask(items(600)), ask(items(1_500)), ask(['z'])];
  for (let index = 0; index < 5; index += 1) {
    ends[index]?.resolve();
    await results[index];
    await Promise.resolve();
  }
  expect(sent.map(({ length }) => length)).toEqual([1, 600, 600, 1_500, 1]);
});

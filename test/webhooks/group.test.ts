import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Group, type StoreRequest } from '../../src/webhooks/group.ts';
import { MemoryDedupeStore, type WebhookInbox } from '../../src/webhooks/index.ts';
import { watchTimers } from '../support/watch-timers.ts';
import { deferred, makeInbox, payload, ScriptedStore, tracking } from './support.ts';

beforeEach(() => {
  vi.useFakeTimers();
  // A process that has run for a while.
  vi.advanceTimersByTime(5_000);
});
afterEach(() => {
  vi.useRealTimers();
});

/** A store whose statements take a millisecond. */
function slowStore(): ScriptedStore {
  const store = new ScriptedStore();
  store.before = () => new Promise((resolve) => setTimeout(resolve, 1));
  return store;
}

function many(inbox: WebhookInbox, count: number, eventId: (index: number) => string, handler = () => {}) {
  const webhooks = Array.from({ length: count }, (_, index) =>
    inbox.process(payload(tracking('t1', eventId(index))), handler),
  );
  return Promise.all(webhooks);
}

function countOf(store: ScriptedStore, operation: string): number {
  return store.calls.filter((call) => call.operation === operation).length;
}

describe('what webhooks want while a statement is under way', () => {
  test('100 webhooks at once → all done by two claims and two commits', async () => {
    const store = slowStore();
    const processing = many(makeInbox({ store }), 100, (index) => `e${index}`);
    await vi.advanceTimersByTimeAsync(10);
    expect((await processing).every(({ outcome, handled }) => outcome === 'done' && handled === 1)).toBe(
      true,
    );
    expect([countOf(store, 'claim'), countOf(store, 'commit')]).toEqual([2, 2]);
  });

  test('300 webhooks at once → a second claim beside the first once 100 wait, and never a third', async () => {
    const store = new ScriptedStore();
    const answered = deferred();
    const under: number[] = [];
    store.before = async (operation, keys) => {
      if (operation !== 'claim') return;
      under.push(keys.length);
      await answered.promise;
    };
    const processing = many(makeInbox({ store }), 300, (index) => `e${index}`);
    await vi.advanceTimersByTimeAsync(10);
    expect(under).toEqual([1, 100]);
    answered.resolve();
    await processing;
    expect(under).toEqual([1, 100, 199]);
  });

  test('2,500 webhooks at once → no statement has more than 1,000 keys', async () => {
    const store = slowStore();
    const processing = many(makeInbox({ store }), 2_500, (index) => `e${index}`);
    await vi.advanceTimersByTimeAsync(20);
    await processing;
    expect(Math.max(...store.calls.map(({ keys }) => keys.length))).toBe(1_000);
  });

  test('large webhooks behind a statement → none is joined with another beyond 1,000 keys', async () => {
    const sent: number[] = [];
    const group = new Group(async (keys) => {
      sent.push(keys.length);
      return keys;
    });
    const keysOf = (count: number) => Array.from({ length: count }, (_, index) => `e${index}`);
    const sizes = [1, 600, 400, 600, 2_000, 1];
    const answers = await Promise.all(sizes.map((size) => group.ask({ keys: keysOf(size) })));
    expect(answers.map(({ length }) => length)).toEqual(sizes);
    expect(sent).toEqual([1, 600, 1_000, 2_000, 1]);
  });

  test('one webhook alone → claimed at once, without a timer', async () => {
    const store = new ScriptedStore();
    const processing = makeInbox({ store }).process(payload(tracking('t1', 'e1')), () => {});
    expect((await processing).outcome).toBe('done');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a key that the store cannot take → its webhook is unavailable, its neighbours are handled', async () => {
    const store = slowStore();
    const inTime = store.before;
    store.before = (operation, keys) => {
      if (keys.some((key) => key.endsWith(':poison'))) throw new Error('invalid byte sequence');
      return inTime(operation, keys);
    };
    const processing = many(makeInbox({ store }), 5, (index) => (index === 3 ? 'poison' : `e${index}`));
    await vi.advanceTimersByTimeAsync(20);
    const outcomes = (await processing).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['done', 'done', 'done', 'unavailable', 'done']);
  });

  test('a commit that fails for a group → tried again for each, all done, none handled twice', async () => {
    const store = slowStore();
    const inTime = store.before;
    let failures = 2;
    store.before = (operation, keys) => {
      if (operation === 'commit' && failures-- > 0) throw new Error('connection reset');
      return inTime(operation, keys);
    };
    const handler = vi.fn();
    const inbox = makeInbox({ store });
    const processing = many(inbox, 20, (index) => `e${index}`, handler);
    await vi.advanceTimersByTimeAsync(500);
    await processing;
    const again = many(inbox, 20, (index) => `e${index}`, handler);
    await vi.advanceTimersByTimeAsync(20);
    expect((await again).every(({ duplicates }) => duplicates === 1)).toBe(true);
    expect(handler).toHaveBeenCalledTimes(20);
  });
});

describe('duplicates', () => {
  test.each<[string, boolean, Parameters<typeof makeInbox>[0]]>([
    ['was handled before', true, {}],
    ['is dead-lettered', false, { maxAttempts: 1, onDeadLetter: () => {} }],
  ])(
    'twice at once, of what %s → the store is asked once, both done',
    async (_title, isCommitted, options) => {
      const store = slowStore();
      if (isCommitted) void store.commit(['tracking/events:t1:e1'], { retainMs: 60_000 });
      await vi.advanceTimersByTimeAsync(1);
      const processing = many(
        makeInbox({ store, ...options }),
        2,
        () => 'e1',
        () => Promise.reject(new Error('out of stock')),
      );
      await vi.advanceTimersByTimeAsync(10);
      expect((await processing).map(({ outcome }) => outcome)).toEqual(['done', 'done']);
      expect(countOf(store, 'claim')).toBe(1);
    },
  );

  test('one that gave up waiting, and then another → the store is not asked, and nothing is handled twice', async () => {
    const store = new ScriptedStore();
    const work = deferred();
    const handler = vi.fn(() => work.promise);
    const inbox = makeInbox({ store });
    const body = payload(tracking('t1', 'e1'));
    const first = inbox.process(body, handler);
    const second = await inbox.process(body, handler, { busyBudgetMs: 0 });
    const third = await inbox.process(body, handler, { busyBudgetMs: 0 });
    expect([second.outcome, third.outcome]).toEqual(['busy', 'busy']);
    work.resolve();
    expect((await first).handled).toBe(1);
    expect(countOf(store, 'claim')).toBe(1);
    expect(handler).toHaveBeenCalledOnce();
  });

  test('the first is through with an event and waits for another one elsewhere → the duplicate is done at once', async () => {
    const store = new ScriptedStore();
    await store.claim(['tracking/events:t1:elsewhere'], { token: 'other', leaseMs: 60_000 });
    const inbox = makeInbox({ store });
    const first = inbox.process(payload(tracking('t1', 'elsewhere', 'here')), () => {});
    const second = inbox.process(payload(tracking('t1', 'here')), () => {});
    const soon = vi.fn();
    void second.then(soon);
    await vi.advanceTimersByTimeAsync(10);
    expect(soon).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ outcome: 'done', duplicates: 1 }));
    await vi.advanceTimersByTimeAsync(60_000);
    await first;
  });

  test('one event under way here, one elsewhere → the one elsewhere is handled as soon as its lease ends', async () => {
    const store = new ScriptedStore();
    await store.claim(['tracking/events:t1:elsewhere'], { token: 'other', leaseMs: 120 });
    const work = deferred();
    const inbox = makeInbox({ store });
    const first = inbox.process(payload(tracking('t1', 'here')), () => work.promise);
    const handler = vi.fn();
    const second = inbox.process(payload(tracking('t1', 'elsewhere', 'here')), handler);
    await vi.advanceTimersByTimeAsync(200);
    expect(handler).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ eventId: 'elsewhere' }),
      expect.anything(),
    );
    work.resolve();
    await vi.advanceTimersByTimeAsync(10);
    expect((await Promise.all([first, second])).map(({ outcome }) => outcome)).toEqual(['done', 'done']);
  });

  test('a wait for another webhook here → one timer, for nothing has to be looked at meanwhile', async () => {
    await watchTimers(async (started) => {
      const work = deferred();
      const inbox = makeInbox({ handlerTimeoutMs: 30_000, busyBudgetMs: 4_000 });
      const body = payload(tracking('t1', 'e1'));
      const first = inbox.process(body, () => work.promise);
      await vi.advanceTimersByTimeAsync(0);
      const countBefore = started.length;
      const second = inbox.process(body, () => {});
      await vi.advanceTimersByTimeAsync(3_000);
      expect(started.slice(countBefore).map(({ delayMs }) => delayMs)).toEqual([4_000]);
      work.resolve();
      await Promise.all([first, second]);
    });
  });

  test('the same webhook three times at once → the store is asked once, all done', async () => {
    const store = slowStore();
    const work = deferred();
    const processing = many(
      makeInbox({ store }),
      3,
      () => 'e1',
      () => work.promise,
    );
    await vi.advanceTimersByTimeAsync(3_000);
    work.resolve();
    await vi.advanceTimersByTimeAsync(2);
    const reports = await processing;
    expect(reports.map(({ handled, duplicates }) => handled + duplicates)).toEqual([1, 1, 1]);
    expect(reports.every(({ outcome }) => outcome === 'done')).toBe(true);
    expect([countOf(store, 'claim'), countOf(store, 'commit')]).toEqual([1, 1]);
  });

  test('two webhooks that hold what the other one waits for → both done', async () => {
    const store = slowStore();
    const inbox = makeInbox({ store });
    const both = Promise.all([
      inbox.process(payload(tracking('t1', 'a'), tracking('t2', 'b')), () => {}),
      inbox.process(payload(tracking('t2', 'c', 'b'), tracking('t1', 'a')), () => {}),
    ]);
    await vi.advanceTimersByTimeAsync(10);
    expect((await both).map(({ outcome }) => outcome)).toEqual(['done', 'done']);
  });

  test('a look while the first is handled and not committed → not answered before it is', async () => {
    const store = new ScriptedStore();
    await store.claim(['tracking/events:t1:elsewhere'], { token: 'other', leaseMs: 60_000 });
    const committing = deferred();
    store.before = (operation) => (operation === 'commit' ? committing.promise : undefined);
    const inbox = makeInbox({ store, busyBudgetMs: 2_000 });
    const first = inbox.process(payload(tracking('t1', 'here')), () => {});
    const second = inbox.process(payload(tracking('t1', 'elsewhere', 'here')), () => {});
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await second).toMatchObject({ outcome: 'busy', duplicates: 0 });
    committing.resolve();
    expect(await first).toMatchObject({ outcome: 'done', handled: 1 });
  });

  test('50 webhooks that wait for another process → one asks for all: 12 looks in 4 s', async () => {
    const store = new ScriptedStore();
    await store.claim(['tracking/events:t1:e1'], { token: 'other', leaseMs: 60_000 });
    const looked = countOf(store, 'claim');
    const processing = many(makeInbox({ store, busyBudgetMs: 4_000 }), 50, () => 'e1');
    await vi.advanceTimersByTimeAsync(3_999);
    expect(countOf(store, 'claim') - looked).toBe(11);
    await vi.advanceTimersByTimeAsync(10);
    expect((await processing).every(({ outcome }) => outcome === 'busy')).toBe(true);
  });
});

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
const fate = fc.constantFrom('commit', 'release', 'crash');
/** Webhooks at the same moment, no two with the same key, and how long it takes until the next ones. */
const round = fc.record({
  owners: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: KEYS.length, maxLength: KEYS.length }),
  fates: fc.array(fate, { minLength: 4, maxLength: 4 }),
  passesMs: fc.constantFrom(0, 500, 1_500),
});

test('any claims, commits, releases, crashes and expiries → grouped as one by one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(round, { maxLength: 12 }), async (rounds) => {
      let now = 0;
      const stores = [0, 1].map(() => new MemoryDedupeStore({ now: () => now }));
      const [grouped, single] = stores;
      if (grouped === undefined || single === undefined) throw new Error('Expected two stores');
      const claims = new Group((keys, token) => grouped.claim(keys, { token, leaseMs: 1_000 }));
      const commits = new Group<void>(async (keys) => {
        await grouped.commit(keys, { retainMs: 10_000 });
        return [];
      });
      for (const { owners, fates, passesMs } of rounds) {
        const webhooks = fates.map((ending, owner) => {
          const request: StoreRequest = { keys: KEYS.filter((_, index) => owners[index] === owner) };
          return { ending, request, token: `${now}-${owner}-${Math.random()}` };
        });
        const together = await Promise.all(webhooks.map(({ request }) => claims.ask(request)));
        for (const [index, { ending, request, token }] of webhooks.entries()) {
          const alone = await single.claim(request.keys, { token, leaseMs: 1_000 });
          expect(together[index]).toEqual(alone);
          const ours = request.keys.filter((_, position) => alone[position]?.status === 'acquired');
          if (ending === 'commit') {
            await single.commit(ours, { retainMs: 10_000 });
            await commits.ask({ keys: ours });
          } else if (ending === 'release') {
            await single.release(ours, { token });
            await grouped.release(ours, { token: request.token ?? '' });
          }
        }
        now += passesMs;
      }
    }),
  );
});

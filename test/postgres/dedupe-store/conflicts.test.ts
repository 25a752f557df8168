import { describe, expect, test } from 'vitest';
import { PostgresDedupeStore, type Queryable } from '../../../src/postgres/index.ts';
import { settled } from '../../support/settled.ts';
import { settleInVirtualTime } from '../../support/virtual-time.ts';

const LEASE = { token: 'mine', leaseMs: 60_000 };
const ACQUIRED = { status: 'acquired', attempt: 1 };

function buildError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code });
}

/** Makes a store on a fake database. `reply` gets the keys of each statement, and returns its rows or throws. */
function makeStore(reply: (keys: readonly string[], count: number) => readonly object[]) {
  /** The keys of each statement. */
  const sent: (readonly string[])[] = [];
  const query = async (_text: string, [keys]: unknown[] = []) => {
    // The store sends its keys as the first value; a purge sends a number.
    const list = Array.isArray(keys) ? keys.map(String) : [];
    sent.push(list);
    return { rows: [...reply(list, sent.length)] };
  };
  return { store: new PostgresDedupeStore({ pool: { query } }), sent };
}

function toClaimed(key: string) {
  return { key, claimant: 'mine', attempts: 1 };
}

const CALLS: [string, (store: PostgresDedupeStore) => Promise<unknown>][] = [
  ['claim', (store) => store.claim(['a'], LEASE)],
  ['commit', (store) => store.commit(['a'], { retainMs: 1 })],
  ['release', (store) => store.release(['a'], { token: 'mine' })],
  ['purge', (store) => store.purge()],
];

describe.each([
  ['a deadlock', '40P01'],
  ['a serialization failure', '40001'],
])('a statement that fails with %s', (_title, code) => {
  test.each(CALLS)('%s, three times → repeated until it succeeds', async (_name, call) => {
    const { store, sent } = makeStore((keys, count) => {
      if (count <= 3) throw buildError(code);
      return keys.map((key) => ({ key: `${key}, which is not locked` }));
    });
    await settleInVirtualTime(() => call(store));
    expect(sent).toHaveLength(4);
  });

  test.each(CALLS)('%s, four times → rejects with the error', async (_name, call) => {
    const { store, sent } = makeStore(() => {
      throw buildError(code);
    });
    await expect(settleInVirtualTime(() => call(store))).rejects.toThrow(`SQLSTATE ${code}`);
    expect(sent).toHaveLength(4);
  });
});

test.each(CALLS)(
  '%s that fails with a lock time-out of the pool or another error → no repeat',
  async (name, call) => {
    const { store, sent } = makeStore(() => {
      throw buildError(name === 'claim' ? '57014' : '55P03');
    });
    await expect(call(store)).rejects.toThrow('SQLSTATE');
    expect(sent).toHaveLength(1);
  },
);

describe('a commit or a release of a locked row', () => {
  const locked = (key: string) => ({ key, token: 'mine' });

  test.each([CALLS[1], CALLS[2]].flatMap((call) => (call === undefined ? [] : [call])))(
    '%s, unlocked before the second try → succeeds',
    async (_name, call) => {
      const { store, sent } = makeStore((keys, count) => (count === 1 ? keys.map(locked) : []));
      await settleInVirtualTime(() => call(store));
      expect(sent).toEqual([['a'], ['a']]);
    },
  );

  test.each<[string, (store: PostgresDedupeStore, keys: string[]) => Promise<unknown>]>([
    ['commit', (store, keys) => store.commit(keys, { retainMs: 1 })],
    ['release', (store, keys) => store.release(keys, { token: 'mine' })],
  ])(
    '%s, still locked at the second try → rejects; the call that shared the statement succeeds',
    async (name, call) => {
      const { store, sent } = makeStore((keys) => keys.filter((key) => key === 'locked').map(locked));
      const outcomes = await settleInVirtualTime(() =>
        Promise.allSettled([call(store, ['free']), call(store, ['also free', 'locked'])]),
      );
      const message = `Could not ${name} an event, because another transaction has locked its row`;
      expect(outcomes).toMatchObject([{ status: 'fulfilled' }, { reason: { message } }]);
      expect(sent).toEqual([['free', 'also free', 'locked'], ['locked']]);
    },
  );

  test('release of a lease that another token holds on a locked row → succeeds at once', async () => {
    const { store, sent } = makeStore((keys) => keys.map((key) => ({ key, token: 'theirs' })));
    await store.release(['a'], { token: 'mine' });
    expect(sent).toHaveLength(1);
  });
});

test('a renewal of a locked lease → rejects, because the lease is neither renewed nor lost', async () => {
  const row = { key: 'a', claimant: null, holder: 'mine', state: 'leased', lease: 5_000 };
  await expect(makeStore(() => [row]).store.claim(['a'], LEASE)).rejects.toThrow(
    'Could not renew the lease of an event, because another transaction has locked its row',
  );
});

describe('a key that another transaction has inserted and not committed', () => {
  const failFor = (keys: readonly string[]) => {
    if (keys.includes('foreign')) throw buildError('55P03');
    return keys.map(toClaimed);
  };

  test('alone → busy for a second, after one statement', async () => {
    const { store, sent } = makeStore(failFor);
    expect(await store.claim(['foreign'], LEASE)).toEqual([{ status: 'busy', retryAfterMs: 1_000 }]);
    expect(sent).toHaveLength(1);
  });

  test.each([1, 15, 16, 255, 500])(
    'with %i other keys → these are acquired, in few statements',
    async (count) => {
      const { store, sent } = makeStore(failFor);
      const others = Array.from({ length: count }, (_, index) => `k${index}`);
      const half = Math.floor(count / 2);
      const keys = [...others.slice(0, half), 'foreign', ...others.slice(half)];
      const claims = await Promise.all(keys.map((key) => store.claim([key], LEASE)));
      expect(claims.flat().map(({ status }) => status)).toEqual(
        keys.map((key) => (key === 'foreign' ? 'busy' : 'acquired')),
      );
      expect(sent.length).toBeLessThanOrEqual(1 + 16 * Math.ceil(Math.log(count + 1) / Math.log(16)));
    },
  );

  test('while its claim is sent again in parts → other claims are sent at once', async () => {
    let endWait = () => {};
    const query: Queryable['query'] = async (_text, [keys] = []) => {
      const list = keys as string[]; // The store sends its keys as the first value.
      if (list.length === 1 && list[0] === 'foreign')
        await new Promise<void>((resolve) => {
          endWait = resolve;
        });
      return { rows: [...failFor(list)] };
    };
    const store = new PostgresDedupeStore({ pool: { query } });
    const claims = store.claim(['a', 'foreign'], LEASE);
    await settled();
    expect(await store.claim(['b'], LEASE)).toEqual([ACQUIRED]);
    endWait();
    expect(await claims).toMatchObject([ACQUIRED, { status: 'busy' }]);
  });

  test('most keys of a claim, until their transaction commits → few statements, in the order of the keys', async () => {
    const keys = Array.from({ length: 320 }, (_, index) => `k${index}`);
    const { store, sent } = makeStore((list, count) => {
      // The second and the third part have none of these keys.
      if (count <= 17 && list[0] !== 'k20' && list[0] !== 'k40') throw buildError('55P03');
      return list.map((key) => ({ key, claimant: 'mine', attempts: Number(key.slice(1)) }));
    });
    const claims = await store.claim(keys, LEASE);
    expect(claims).toEqual(keys.map((_, attempt) => ({ status: 'acquired', attempt })));
    expect(sent.map(({ length }) => length)).toEqual([320, ...Array(16).fill(20), 280]);
  });

  test('most keys of a claim, for longer → busy, and the others are acquired', async () => {
    const keys = Array.from({ length: 40 }, (_, index) => `k${index}`);
    const { store } = makeStore((list) => {
      if (list.some((key) => key !== 'k7' && key !== 'k20')) throw buildError('55P03');
      return list.map(toClaimed);
    });
    const claims = await store.claim(keys, LEASE);
    expect(keys.filter((_, index) => claims[index]?.status === 'acquired')).toEqual(['k7', 'k20']);
  });
});

test('no statement has a list of booleans, which postgres.js sends as one boolean', async () => {
  const values: unknown[] = [];
  const query = async (_text: string, sent: unknown[] = []) => {
    values.push(...sent);
    return { rows: [] };
  };
  const store = new PostgresDedupeStore({ pool: { query } });
  await store.claim(['a'], LEASE);
  await store.commit(['a'], { retainMs: 1 });
  await store.release(['a'], { token: 'mine', uncounted: true });
  await store.release(['a'], { token: 'mine' });
  await store.purge();
  expect(values.flat().map((value) => typeof value)).not.toContain('boolean');
  expect(values.length).toBeGreaterThan(0);
});

import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { type RedisClient, RedisDedupeStore } from '../../src/redis/index.ts';
import type { IoredisClient, NodeRedisClient } from '../../src/redis/redis-client.ts';
import { deferred } from '../support/deferred.ts';
import { settled } from '../support/settled.ts';

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

type Server = (command: string, script: string, keys: string[], values: string[]) => Promise<unknown>;

function nodeRedis(server: Server): NodeRedisClient {
  return {
    eval: (script, { keys, arguments: values }) => server('eval', script, keys, values),
    evalSha: (sha1, { keys, arguments: values }) => server('evalsha', sha1, keys, values),
  };
}

function ioredis(server: Server): IoredisClient {
  const run =
    (command: string) =>
    (script: string, count: number, ...rest: string[]) =>
      server(command, script, rest.slice(0, count), rest.slice(count));
  return { eval: run('eval'), evalsha: run('evalsha') };
}

/** A store on a client that knows every script, records keys and arguments, and gives the scripted replies. */
function makeStore(...replies: unknown[]) {
  const sent: string[] = [];
  const redis = nodeRedis(async (_command, _script, keys, values) => {
    sent.push(`${keys.join(' ')} | ${values.join(' ')}`);
    const reply = replies.shift();
    if (reply instanceof Error) throw reply;
    return reply;
  });
  return { store: new RedisDedupeStore({ redis, keyPrefix: 'p:' }), redis, sent };
}

describe('commands', () => {
  test.each<[string, (store: RedisDedupeStore) => Promise<unknown>, string, number[]?]>([
    [
      'claim',
      (store) => store.claim(['a', 'b'], { token: 'me', leaseMs: 33.3 }),
      `me 34 ${WEEK_MS} 0`,
      [1, 0],
    ],
    [
      'claim that retains done keys',
      (store) => store.claim(['a', 'b'], { token: 'me', leaseMs: 33.3, retainMs: 99.5 }),
      `me 34 ${WEEK_MS} 100`,
      [1, 0],
    ],
    ['commit', (store) => store.commit(['a', 'b'], { retainMs: 99.5 }), '100'],
    ['release', (store) => store.release(['a', 'b'], { token: 'me' }), `me ${WEEK_MS} 0`],
    [
      'uncounted release',
      (store) => store.release(['a', 'b'], { token: 'me', uncounted: true }),
      `me ${WEEK_MS} 1`,
    ],
  ])(
    '%s → one script for all keys, with the prefix and whole milliseconds',
    async (_title, call, values, reply = []) => {
      const { store, sent } = makeStore(reply);
      await call(store);
      expect(sent).toEqual([`p:a p:b | ${values}`]);
    },
  );

  test('no prefix → a default prefix that names the package', async () => {
    const { redis, sent } = makeStore([1]);
    await new RedisDedupeStore({ redis }).claim(['a'], { token: 'mine', leaseMs: 1 });
    expect(sent[0]).toMatch(/^tracking-client:webhooks:a \|/);
  });

  test.each([
    ['half a surrogate pair, because drivers send every half as the same character', 'a\ud800'],
    ['the look of a hash', 'sha256:abc'],
  ])('a key with %s → its SHA-256', async (_title, key) => {
    const { store, sent } = makeStore([1], [], []);
    await store.claim([key], { token: 'mine', leaseMs: 1 });
    await store.commit([key], { retainMs: 1 });
    await store.release([key], { token: 'mine' });
    expect(sent).toHaveLength(3);
    for (const line of sent) expect(line).toMatch(/^p:sha256:[0-9a-f]{64} \|/);
  });
});

describe('many keys', () => {
  const countKeys = (line: string) => line.split(' | ')[0]?.split(' ').length;
  const keys = Array.from({ length: 1_201 }, (_, index) => `k${index}`);

  test.each<[string, (store: RedisDedupeStore) => Promise<unknown>, ((count: number) => number[])?]>([
    [
      'claim',
      (store) => store.claim(keys, { token: 't', leaseMs: 1 }),
      (count) => Array.from({ length: count }, () => 1),
    ],
    ['commit', (store) => store.commit(keys, { retainMs: 1 })],
    ['release', (store) => store.release(keys, { token: 't' })],
  ])('%s of 1,201 keys → scripts of at most 500 keys', async (_title, call, reply = () => []) => {
    const { store, sent } = makeStore(...[500, 500, 201].map(reply));
    await call(store);
    expect(sent.map(countKeys)).toEqual([500, 500, 201]);
  });

  test('1,201 claims → one for each key, in order', async () => {
    const replies = [keys.slice(0, 500), keys.slice(500, 1_000), keys.slice(1_000)];
    const attempts = replies.map((part) => part.map((key) => Number(key.slice(1)) + 1));
    const claims = await makeStore(...attempts).store.claim(keys, { token: 't', leaseMs: 1 });
    expect(claims).toEqual(keys.map((_, index) => ({ status: 'acquired', attempt: index + 1 })));
  });

  test.each([
    [500, [500]],
    [501, [500, 1]],
  ])('%i keys → scripts of %j keys', async (count, sizes) => {
    const { store, sent } = makeStore(...sizes.map((size) => Array.from({ length: size }, () => 1)));
    await store.claim(keys.slice(0, count), { token: 't', leaseMs: 1 });
    expect(sent.map(countKeys)).toEqual(sizes);
  });

  test('one of three scripts fails → the claim rejects with its error', async () => {
    const ones = (count: number) => Array.from({ length: count }, () => 1);
    const { store } = makeStore(ones(500), new Error('OOM command not allowed'), ones(201));
    await expect(store.claim(keys, { token: 't', leaseMs: 1 })).rejects.toThrow('OOM');
  });
});

describe('replies', () => {
  test.each([
    ['numbers', [2, -250, 0]],
    ['texts', ['2', '-250', '0']],
    ['buffers', [Buffer.from('2'), Buffer.from('-250'), Buffer.from('0')]],
  ])('%s → claims', async (_title, replies) => {
    const claims = await makeStore(replies).store.claim(['a', 'b', 'c'], { token: 't', leaseMs: 1 });
    expect(claims).toEqual([
      { status: 'acquired', attempt: 2 },
      { status: 'busy', retryAfterMs: 250 },
      { status: 'done' },
    ]);
  });

  test('a cluster, which needs one script for each key → claims in the order of the keys', async () => {
    const crossSlot = new Error("CROSSSLOT Keys in request don't hash to the same slot");
    const { store } = makeStore(crossSlot, [1], [0]);
    const claims = await store.claim(['a', 'b'], { token: 'mine', leaseMs: 1 });
    expect(claims).toEqual([{ status: 'acquired', attempt: 1 }, { status: 'done' }]);
  });

  test('a cluster that has refused several keys once → later keys are sent alone at once', async () => {
    const { store, sent } = makeStore(new Error('CROSSSLOT'), [1], [1], [1], [1]);
    await store.claim(['a', 'b'], { token: 'mine', leaseMs: 1 });
    await store.claim(['c', 'd'], { token: 'mine', leaseMs: 1 });
    expect(sent.map((line) => line.split(' | ')[0])).toEqual(['p:a p:b', 'p:a', 'p:b', 'p:c', 'p:d']);
  });

  test('a script for one of several keys fails at once → the claim rejects only when the others have ended', async () => {
    const slow = deferred<unknown>();
    const redis = nodeRedis(async (_command, _script, keys) => {
      if (keys.length > 1) throw new Error('CROSSSLOT');
      if (keys.includes('p:a')) throw new Error('OOM command not allowed');
      return slow.promise;
    });
    const onEnd = vi.fn();
    const claim = new RedisDedupeStore({ redis, keyPrefix: 'p:' }).claim(['a', 'b'], {
      token: 't',
      leaseMs: 1,
    });
    claim.catch(onEnd);
    await settled();
    expect(onEnd).not.toHaveBeenCalled();
    slow.resolve([1]);
    await expect(claim).rejects.toThrow('OOM');
  });

  test('an error that is not about a cluster → rejects with it, and nothing is sent again', async () => {
    const { store, sent } = makeStore(new Error('OOM command not allowed'), [1], [1]);
    await expect(store.claim(['a', 'b'], { token: 'mine', leaseMs: 1 })).rejects.toThrow('OOM');
    expect(sent).toHaveLength(1);
  });

  test('a cluster that refuses a single key → rejects with its error, and nothing is sent again', async () => {
    const { store, sent } = makeStore(new Error('CROSSSLOT'), [1]);
    await expect(store.claim(['a'], { token: 'mine', leaseMs: 1 })).rejects.toThrow('CROSSSLOT');
    expect(sent).toHaveLength(1);
  });
});

describe.each([
  ['a client of redis', nodeRedis],
  ['a client of ioredis', ioredis],
])('scripts on %s', (_title, connect) => {
  test('a script that the server does not know → sent as a whole, once, and then by its SHA-1', async () => {
    const log: string[] = [];
    const loaded = new Set<string>();
    const redis: RedisClient = connect(async (command, script, keys, values) => {
      log.push(`${command} ${keys} ${values}`);
      if (command === 'eval') loaded.add(createHash('sha1').update(script).digest('hex'));
      else if (!loaded.has(script)) throw new Error('NOSCRIPT No matching script.');
      return [];
    });
    const store = new RedisDedupeStore({ redis, keyPrefix: 'p:' });
    await store.commit(['a'], { retainMs: 1 });
    await store.commit(['b'], { retainMs: 1 });
    expect(log).toEqual(['evalsha p:a 1', 'eval p:a 1', 'evalsha p:b 1']);
  });
});

describe('options', () => {
  test.each([
    ['keyPrefix', ''],
    ['keyPrefix', 5],
    ['commandTimeoutMs', 0],
    ['redis', undefined],
    ['redis', { eval() {} }],
  ])('%s %j → ConfigurationError', (name, value) => {
    // Safe cast: callers without types may pass such values.
    const options = { redis: makeStore().redis, [name]: value } as unknown as { redis: RedisClient };
    expect(() => new RedisDedupeStore(options)).toThrow(ConfigurationError);
  });

  test('a connection string as client → ConfigurationError without it, because it can contain a password', () => {
    // @ts-expect-error: what a caller without types may pass
    const create = () => new RedisDedupeStore({ redis: 'redis://:hunter2@localhost' });
    expect(create).toThrow(/got a string of \d+ characters$/);
  });
});

describe('Redis that does not respond', () => {
  beforeEach(() => void vi.useFakeTimers());
  const hanging = nodeRedis(() => new Promise<never>(() => {}));

  test.each([
    ['claim', undefined, 2_000, (store: RedisDedupeStore) => store.claim(['a'], { token: 't', leaseMs: 1 })],
    ['commit', 300, 300, (store: RedisDedupeStore) => store.commit(['a'], { retainMs: 1 })],
    ['release', undefined, 2_000, (store: RedisDedupeStore) => store.release(['a'], { token: 't' })],
  ])('%s with commandTimeoutMs %s → rejects after %i ms', async (_title, commandTimeoutMs, limitMs, call) => {
    const store = new RedisDedupeStore({ redis: hanging, commandTimeoutMs });
    expect(store.commandTimeoutMs).toBe(limitMs);
    const outcome = expect(call(store)).rejects.toThrow(`within ${limitMs} ms`);
    await vi.advanceTimersByTimeAsync(limitMs);
    await outcome;
  });
});

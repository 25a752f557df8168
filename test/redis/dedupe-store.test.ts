import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { RedisDedupeStore } from '../../src/redis/index.ts';
import type { NodeRedisClient } from '../../src/redis/redis-client.ts';
import { WebhookInbox } from '../../src/webhooks/index.ts';

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** A client that writes down the keys and arguments of every script and replies as told. */
function recordingClient(...replies: unknown[]) {
  const sent: string[] = [];
  const answer = async (_: string, given: { keys: string[]; arguments: string[] }) => {
    sent.push(`${given.keys.join(' ')} | ${given.arguments.join(' ')}`);
    const reply = replies.shift();
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const redis: NodeRedisClient = { eval: answer, evalSha: answer };
  return { redis, sent };
}

describe('claim', () => {
  test('keys → one script for all, with prefix, token, lease and retention', async () => {
    const { redis, sent } = recordingClient([1, 0]);
    const store = new RedisDedupeStore({ redis, keyPrefix: 'app:' });
    await store.claim(['a', 'b'], { token: 'mine', leaseMs: 60_000 });
    expect(sent).toEqual([`app:a app:b | mine 60000 ${WEEK_MS}`]);
  });

  test('no prefix given → one that tells whose keys these are', async () => {
    const { redis, sent } = recordingClient([1]);
    await new RedisDedupeStore({ redis }).claim(['a'], { token: 'mine', leaseMs: 1 });
    expect(sent[0]).toMatch(/^tracking-client:webhooks:a \|/);
  });

  test('a lease with a fraction → the next whole millisecond, for Redis takes no other', async () => {
    const { redis, sent } = recordingClient([1]);
    await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).claim(['a'], { token: 'mine', leaseMs: 33.3 });
    expect(sent).toEqual([`p:a | mine 34 ${WEEK_MS}`]);
  });

  test.each([
    ['numbers', [2, -250, 0]],
    ['texts', ['2', '-250', '0']],
    ['buffers', [Buffer.from('2'), Buffer.from('-250'), Buffer.from('0')]],
  ])('replies as %s → claims', async (_, replies) => {
    const { redis } = recordingClient(replies);
    const claims = await new RedisDedupeStore({ redis }).claim(['a', 'b', 'c'], { token: 't', leaseMs: 1 });
    expect(claims).toEqual([
      { status: 'acquired', attempt: 2 },
      { status: 'busy', retryAfterMs: 250 },
      { status: 'done' },
    ]);
  });

  test.each([[null], 'OK', [['maybe']]])('the reply %j → rejects', async (reply) => {
    const { redis } = recordingClient(reply);
    const claim = new RedisDedupeStore({ redis }).claim(['a'], { token: 't', leaseMs: 1 });
    await expect(claim).rejects.toThrow(TypeError);
  });
});

describe('a cluster that keeps the keys on several nodes', () => {
  const crossSlot = new Error("CROSSSLOT Keys in request don't hash to the same slot");

  test('the first claim → asked again key by key, and so ever after', async () => {
    const { redis, sent } = recordingClient(crossSlot, [1], [0]);
    const store = new RedisDedupeStore({ redis, keyPrefix: 'p:' });
    const claims = await store.claim(['a', 'b'], { token: 'mine', leaseMs: 1 });
    expect(claims).toEqual([{ status: 'acquired', attempt: 1 }, { status: 'done' }]);
    await store.commit(['a', 'b'], { retainMs: 1 });
    expect(sent.map((line) => line.split(' |')[0])).toEqual(['p:a p:b', 'p:a', 'p:b', 'p:a', 'p:b']);
  });

  test('any other error → rejects with it, nothing sent again', async () => {
    const { redis, sent } = recordingClient(
      new Error("READONLY You can't write against a read only replica."),
    );
    const claim = new RedisDedupeStore({ redis }).claim(['a', 'b'], { token: 't', leaseMs: 1 });
    await expect(claim).rejects.toThrow('READONLY');
    expect(sent).toHaveLength(1);
  });
});

test.each([
  ['half a surrogate pair, which drivers send as the same character as any other half', 'a\ud800'],
  ['the look of a hash', 'sha256:abc'],
])('a key with %s → its SHA-256', async (_title, key) => {
  const { redis, sent } = recordingClient([1]);
  const store = new RedisDedupeStore({ redis, keyPrefix: 'p:' });
  await store.claim([key], { token: 'mine', leaseMs: 1 });
  await store.commit([key], { retainMs: 1 });
  await store.release([key], { token: 'mine' });
  expect(sent).toHaveLength(3);
  for (const line of sent) expect(line).toMatch(/^p:sha256:[0-9a-f]{64} \|/);
});

test('a key in another script → itself, so that keys can be read', async () => {
  const { redis, sent } = recordingClient([1]);
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).commit(['t1:包裹 📦'], { retainMs: 1 });
  expect(sent).toEqual(['p:t1:包裹 📦 | 1']);
});

test('commit → one script, with the retention in whole milliseconds', async () => {
  const { redis, sent } = recordingClient();
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).commit(['a', 'b'], { retainMs: 99.5 });
  expect(sent).toEqual(['p:a p:b | 100']);
});

test('release → one script, with the token', async () => {
  const { redis, sent } = recordingClient();
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).release(['a', 'b'], { token: 'mine' });
  expect(sent).toEqual([`p:a p:b | mine ${WEEK_MS}`]);
});

test('no keys → nothing is sent', async () => {
  const { redis, sent } = recordingClient();
  const store = new RedisDedupeStore({ redis });
  expect(await store.claim([], { token: 'mine', leaseMs: 1 })).toEqual([]);
  await store.commit([], { retainMs: 1 });
  await store.release([], { token: 'mine' });
  expect(sent).toEqual([]);
});

test.each(['', 42, null])('%j as keyPrefix → ConfigurationError', (keyPrefix) => {
  const { redis } = recordingClient();
  // @ts-expect-error: what a caller without types may pass
  expect(() => new RedisDedupeStore({ redis, keyPrefix })).toThrow(ConfigurationError);
});

test('something that is no client → ConfigurationError', () => {
  // @ts-expect-error: what a caller without types may pass
  expect(() => new RedisDedupeStore({ redis: {} })).toThrow(ConfigurationError);
});

describe('Redis that does not respond', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const hang = () => new Promise<never>(() => {});
  const hanging: NodeRedisClient = { eval: hang, evalSha: hang };

  test.each([
    ['claim', (store: RedisDedupeStore) => store.claim(['a'], { token: 't', leaseMs: 1 })],
    ['commit', (store: RedisDedupeStore) => store.commit(['a'], { retainMs: 1 })],
    ['release', (store: RedisDedupeStore) => store.release(['a'], { token: 't' })],
  ])('%s → rejects after 2 s', async (_title, call) => {
    const outcome = expect(call(new RedisDedupeStore({ redis: hanging }))).rejects.toThrow('within 2000 ms');
    await vi.advanceTimersByTimeAsync(2_000);
    await outcome;
  });

  test('commandTimeoutMs → rejects after that time', async () => {
    const store = new RedisDedupeStore({ redis: hanging, commandTimeoutMs: 300 });
    const outcome = expect(store.commit(['a'], { retainMs: 1 })).rejects.toThrow('within 300 ms');
    await vi.advanceTimersByTimeAsync(300);
    await outcome;
  });

  test('and claims after its limit, as a client that was offline does → the key is released, a redelivery handles it', async () => {
    const sent: string[] = [];
    let goOnline = () => {};
    const online = new Promise<void>((resolve) => {
      goOnline = resolve;
    });
    const send = async (_script: string, { arguments: [token, second] }: { arguments: string[] }) => {
      await online;
      // Only a claim has three arguments, of which the second is a lease; a release names the token alone.
      sent.push(`${second === '60000' ? 'claim' : 'release'} ${token}`);
      return [1];
    };
    const store = new RedisDedupeStore({ redis: { eval: send, evalSha: send } });
    const inbox = new WebhookInbox({ store, onError: () => {} });
    const onEvent = vi.fn();
    const processing = inbox.process({ trackerId: 't1', events: [{ eventId: 'e1' }] }, onEvent);
    await vi.advanceTimersByTimeAsync(2_000);
    expect((await processing).outcome).toBe('unavailable');
    await vi.advanceTimersByTimeAsync(60_000);
    goOnline();
    await vi.advanceTimersByTimeAsync(0);
    const token = sent[0]?.split(' ')[1];
    expect(sent.at(-1)).toBe(`release ${token}`);
    expect(onEvent).not.toHaveBeenCalled();
  });
});

test('2,500 keys → scripts of at most 1,000 keys', async () => {
  const { redis, sent } = recordingClient([], [], []);
  const keys = Array.from({ length: 2_500 }, (_, index) => `k${index}`);
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).commit(keys, { retainMs: 1 });
  expect(sent.map((line) => line.split(' | ')[0]?.split(' ').length)).toEqual([1_000, 1_000, 500]);
});

import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import { type NodeRedisClient, RedisDedupeStore } from '../../src/redis/index.ts';

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

/** A client that writes down the keys and arguments of every script and replies as told. */
function recordingClient(...replies: unknown[]) {
  const sent: string[] = [];
  const answer = async (_: string, given: { keys: string[]; arguments: string[] }) => {
    sent.push(`${given.keys.join(' ')} | ${given.arguments.join(' ')}`);
    return replies.shift();
  };
  const redis: NodeRedisClient = { eval: answer, evalSha: answer };
  return { redis, sent };
}

describe('claim', () => {
  test('keys → one script each, with prefix, token, lease and retention', async () => {
    const { redis, sent } = recordingClient(['acquired', 1], ['done', 0]);
    const store = new RedisDedupeStore({ redis, keyPrefix: 'app:' });
    await store.claim(['a', 'b'], { token: 'mine', leaseMs: 60_000 });
    expect(sent).toEqual([`app:a | mine 60000 ${WEEK_MS}`, `app:b | mine 60000 ${WEEK_MS}`]);
  });

  test('no prefix given → one that tells whose keys these are', async () => {
    const { redis, sent } = recordingClient(['acquired', 1]);
    await new RedisDedupeStore({ redis }).claim(['a'], { token: 'mine', leaseMs: 1 });
    expect(sent[0]).toMatch(/^tracking-client:dedupe:a \|/);
  });

  test('a lease with a fraction → the next whole millisecond, for Redis takes no other', async () => {
    const { redis, sent } = recordingClient(['acquired', 1]);
    await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).claim(['a'], { token: 'mine', leaseMs: 33.3 });
    expect(sent).toEqual([`p:a | mine 34 ${WEEK_MS}`]);
  });

  test.each([
    ['texts and numbers', ['acquired', 2], ['busy', 250], ['done', 0]],
    ['numbers as texts', ['acquired', '2'], ['busy', '250'], ['done', '0']],
    ['buffers', [Buffer.from('acquired'), 2], [Buffer.from('busy'), 250], [Buffer.from('done'), 0]],
  ])('replies as %s → claims', async (_, ...replies) => {
    const { redis } = recordingClient(...replies);
    const claims = await new RedisDedupeStore({ redis }).claim(['a', 'b', 'c'], { token: 't', leaseMs: 1 });
    expect(claims).toEqual([
      { status: 'acquired', attempt: 2 },
      { status: 'busy', retryAfterMs: 250 },
      { status: 'done' },
    ]);
  });

  test.each([null, 'OK', [], ['maybe', 1]])('the reply %j → rejects', async (reply) => {
    const { redis } = recordingClient(reply);
    const claim = new RedisDedupeStore({ redis }).claim(['a'], { token: 't', leaseMs: 1 });
    await expect(claim).rejects.toThrow(TypeError);
  });
});

test.each([
  ['half a surrogate pair, which drivers send as the same character as any other half', 'a\ud800'],
  ['the look of a hash', 'sha256:abc'],
])('a key with %s → its SHA-256', async (_title, key) => {
  const { redis, sent } = recordingClient(['acquired', 1]);
  const store = new RedisDedupeStore({ redis, keyPrefix: 'p:' });
  await store.claim([key], { token: 'mine', leaseMs: 1 });
  await store.commit([key], { retainMs: 1 });
  await store.release([key], { token: 'mine' });
  expect(sent).toHaveLength(3);
  for (const line of sent) expect(line).toMatch(/^p:sha256:[0-9a-f]{64} \|/);
});

test('a key in another script → itself, so that keys can be read', async () => {
  const { redis, sent } = recordingClient(['acquired', 1]);
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).commit(['t1:包裹 📦'], { retainMs: 1 });
  expect(sent).toEqual(['p:t1:包裹 📦 | 1']);
});

test('commit → one script a key, with the retention in whole milliseconds', async () => {
  const { redis, sent } = recordingClient();
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).commit(['a', 'b'], { retainMs: 99.5 });
  expect(sent).toEqual(['p:a | 100', 'p:b | 100']);
});

test('release → one script a key, with the token', async () => {
  const { redis, sent } = recordingClient();
  await new RedisDedupeStore({ redis, keyPrefix: 'p:' }).release(['a', 'b'], { token: 'mine' });
  expect(sent).toEqual(['p:a | mine', 'p:b | mine']);
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

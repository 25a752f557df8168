import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RedisEmulator } from '../../support/redis-emulator.ts';
import { ownKeys } from '../redis-clients.ts';
import { describeWithRedis } from '../services.ts';

const key = fc.constantFrom('a', 'b', 'c');
const member = fc.constantFrom('x:1', 'x:10', 'x:2', 'y:1');
const score = fc.integer({ min: -3, max: 3 }).map(String);
const bound = fc.oneof(
  fc.constantFrom('-inf', '+inf'),
  score,
  score.map((text) => `(${text}`),
);
const word = (text: string) => fc.constant(text);

/** Every command of the limiter's script, on sorted sets. Times are left out, because they differ. */
const command = fc.oneof(
  fc.tuple(word('ZADD'), key, score, member),
  fc.tuple(word('ZREM'), key, member),
  ...['ZREMRANGEBYSCORE', 'ZRANGEBYSCORE'].map((name) => fc.tuple(word(name), key, bound, bound)),
  ...['ZCARD', 'EXISTS', 'PTTL'].map((name) => fc.tuple(word(name), key)),
  fc.tuple(word('ZRANGE'), key, word('0'), fc.constantFrom('0', '-1'), word('WITHSCORES')),
  fc.tuple(word('ZRANGE'), key, word('0'), word('-1')),
);

await describeWithRedis('the emulator of Redis', (url) => {
  const { admin, keyPrefix } = ownKeys(url);

  test('any commands on sorted sets → the replies of Redis', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 30 }), async (commands) => {
        const emulator = new RedisEmulator();
        const run = randomUUID();
        for (const [name, ...input] of commands) {
          const own = input.map((text) => (/^[abc]$/.test(text) ? `${keyPrefix}${run}:${text}` : text));
          const replies = [emulator.call([name, ...own]) ?? null, await admin.call(name, ...own)];
          // To a client, Redis gives scores as pairs and numbers; to a script, as a flat list of texts.
          const [emulated, real] = replies.map((reply) => [reply].flat(2).map(String));
          expect([name, ...own, emulated]).toEqual([name, ...own, real]);
        }
      }),
      { numRuns: 100 },
    );
  });

  test('keys that expire, and scripts → the replies of Redis', async () => {
    const source = `
      local replies = { tonumber(redis.call('GET', KEYS[1]) or ARGV[1]) }
      redis.call('SET', KEYS[1], ARGV[2], 'PX', 60000)
      redis.call('PEXPIRE', KEYS[1], 90000)
      if redis.call('PTTL', KEYS[1]) > 80000 then replies[2] = 2.9 end
      replies[3] = tonumber(redis.call('GET', KEYS[1]))
      replies[4] = #redis.call('TIME')
      if not redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000, 'NX') then replies[5] = 9 end
      return replies`;
    const input = [`${keyPrefix}text`, '7', '8'] as const;
    const expected = await admin.eval(source, 1, ...input);
    expect(expected).toEqual([7, 2, 8, 2, 9]);
    expect(new RedisEmulator().run(source, [input[0]], input.slice(1))).toEqual(expected);
  });
});

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.ts';
import {
  type IoredisClient,
  type NodeRedisClient,
  redisScript,
  scriptRunner,
} from '../../src/redis/redis-client.ts';

const SCRIPT = redisScript('return KEYS[1]');
const CALLS = ['a', 'b', 'c'].map((key) => ({ keys: [key], arguments: ['1', '2'] }));

/** A server that knows a script once it was sent as a whole, and answers with the first key. */
class FakeServer {
  readonly log: string[] = [];
  readonly #known = new Set<string>();
  readonly #broken: ReadonlySet<string>;

  constructor(options: { readonly knows?: readonly string[]; readonly broken?: readonly string[] } = {}) {
    for (const sha1 of options.knows ?? []) this.#known.add(sha1);
    this.#broken = new Set(options.broken);
  }

  async answer(command: string, script: string, keys: readonly string[], rest: readonly string[]) {
    const [key = ''] = keys;
    this.log.push([command, key, ...rest].join(' '));
    await Promise.resolve();
    if (this.#broken.has(key)) throw new Error(`OOM command not allowed for ${key}`);
    if (command === 'eval') this.#known.add(redisScript(script).sha1);
    else if (!this.#known.has(script)) throw new Error('NOSCRIPT No matching script. Please use EVAL.');
    return `reply to ${key}`;
  }
}

function nodeRedis(server: FakeServer): NodeRedisClient {
  return {
    eval: (script, given) => server.answer('eval', script, given.keys, given.arguments),
    evalSha: (sha1, given) => server.answer('evalsha', sha1, given.keys, given.arguments),
  };
}

function ioredis(server: FakeServer): IoredisClient {
  const run =
    (command: string) =>
    (script: string, count: number, ...rest: string[]) =>
      server.answer(command, script, rest.slice(0, count), rest.slice(count));
  return { eval: run('eval'), evalsha: run('evalsha') };
}

describe.each([
  ['a client of redis', nodeRedis],
  ['a client of ioredis', ioredis],
])('%s', (_, connect) => {
  test('several calls of a known script → sent together by SHA-1, replies in order', async () => {
    const server = new FakeServer({ knows: [SCRIPT.sha1] });
    const replies = await scriptRunner(connect(server)).runAll(SCRIPT, CALLS);
    expect(replies).toEqual(['reply to a', 'reply to b', 'reply to c']);
    expect(server.log).toEqual(['evalsha a 1 2', 'evalsha b 1 2', 'evalsha c 1 2']);
  });

  test('a script that the server does not know → sent as a whole, once, replies in order', async () => {
    const server = new FakeServer();
    const runner = scriptRunner(connect(server));
    await runner.run(SCRIPT, { keys: ['first'], arguments: [] });
    expect(await runner.runAll(SCRIPT, CALLS)).toEqual(['reply to a', 'reply to b', 'reply to c']);
    expect(server.log.filter((line) => line.startsWith('eval '))).toEqual(['eval first']);
  });

  test('a call that fails → rejects with its error, though others succeed', async () => {
    const server = new FakeServer({ knows: [SCRIPT.sha1], broken: ['b', 'c'] });
    const failing = scriptRunner(connect(server)).runAll(SCRIPT, CALLS);
    await expect(failing).rejects.toThrow('OOM command not allowed for b');
  });

  test('a failure of another kind → not sent again', async () => {
    const server = new FakeServer({ knows: [SCRIPT.sha1], broken: ['a'] });
    await expect(scriptRunner(connect(server)).run(SCRIPT, { keys: ['a'], arguments: [] })).rejects.toThrow(
      'OOM',
    );
    expect(server.log.filter((line) => line.includes(' a'))).toHaveLength(1);
  });
});

test('a cluster where one node knows the script and one does not → only the refused calls again', async () => {
  const server = new FakeServer({ knows: [SCRIPT.sha1] });
  const client = nodeRedis(server);
  const { evalSha } = client;
  client.evalSha = (sha1, given) =>
    given.keys[0] === 'b' ? Promise.reject(new Error('NOSCRIPT No matching script')) : evalSha(sha1, given);
  expect(await scriptRunner(client).runAll(SCRIPT, CALLS)).toEqual([
    'reply to a',
    'reply to b',
    'reply to c',
  ]);
  expect(server.log).toEqual(['evalsha a 1 2', 'evalsha c 1 2', 'eval b 1 2']);
});

test('a client that rejects with no Error → rejects with that very thing', async () => {
  const client = nodeRedis(new FakeServer());
  client.evalSha = () => Promise.reject('gone');
  await expect(scriptRunner(client).runAll(SCRIPT, CALLS)).rejects.toBe('gone');
});

test('redisScript → the SHA-1 that Redis computes', () => {
  expect(redisScript('return 1').sha1).toBe(createHash('sha1').update('return 1').digest('hex'));
  expect(redisScript('return 1').sha1).toBe('e0e1f9fabfc9d4800c877a703b823ac0578ff8db');
});

test.each([undefined, null, 'redis://localhost', {}, { eval() {} }])(
  '%j as client → ConfigurationError',
  (redis) => {
    // @ts-expect-error: what a caller without types may pass
    expect(() => scriptRunner(redis)).toThrow(ConfigurationError);
  },
);

test('a connection string as client → not in the message, for it can hold a password', () => {
  // @ts-expect-error: what a caller without types may pass
  expect(() => scriptRunner('redis://:hunter2@localhost')).toThrow(/got a string of \d+ characters$/);
});

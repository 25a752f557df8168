import { createHash } from 'node:crypto';
import { refuseOption } from '../common/check-options.ts';
import { readError } from '../common/foreign.ts';
import { kindOrNumber } from '../common/messages.ts';
import { hasMethods, option } from '../common/option-schemas.ts';
import { ConfigurationError } from '../errors.ts';
import { createReconnect, explainReplica, isRefusalOfReplica } from './failover.ts';

/** A client, pool, sentinel or cluster of the package `redis` (node-redis). */
export interface NodeRedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client or cluster of the package `ioredis`. */
export interface IoredisClient {
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** A connected client of `redis` or `ioredis`; its methods tell which of the two it is. */
export type RedisClient = NodeRedisClient | IoredisClient;

const CLIENT_RULE = 'a client of `redis` or `ioredis`';
const CLIENT_ADVICE =
  'pass a client of `ioredis`, or one of `redis` 4 or newer that returns promises (without `legacyMode`, and not `client.legacy()`); a client that uses HTTP does not work';

/** `createScriptRunner` checks the methods. */
export const redisOption = option<RedisClient>(
  CLIENT_RULE,
  (redis) => typeof Object(redis).eval === 'function',
);

/** A Lua script, and the SHA-1 under which Redis keeps it. */
export interface RedisScript {
  readonly source: string;
  readonly sha1: string;
  /** Number of numbers in the reply for so many keys. */
  readonly countReplies: (keyCount: number) => number;
}

/** Runs a script that replies with a list of numbers. In a cluster all its keys must be of one hash slot. */
export type RunScript = (
  script: RedisScript,
  keys: readonly string[],
  values: readonly string[],
) => Promise<readonly number[]>;

export function createScript(source: string, countReplies: RedisScript['countReplies']): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex'), countReplies };
}

/** Builds the function that runs scripts on either client. */
export function createScriptRunner(redis: RedisClient): RunScript {
  const send = createSend(redis);

  async function run(
    command: Command,
    script: RedisScript,
    keys: readonly string[],
    values: readonly string[],
  ) {
    const text = command === 'eval' ? script.source : script.sha1;
    const reply = await waitForReply(() => send(command, text, keys, values));
    const count = script.countReplies(keys.length);
    const numbers = Array.isArray(reply) ? reply.map(toNumber) : undefined;
    if (numbers?.length === count && !numbers.some(Number.isNaN)) return numbers;
    return refuseClient(`reply with a list of ${count} numbers`, kindOrNumber(reply));
  }

  const runLoaded: RunScript = async (script, keys, values) => {
    try {
      return await run('evalsha', script, keys, values);
    } catch (error) {
      // After NOSCRIPT nothing has run, so sending the whole script repeats nothing.
      if (!readError(error)?.message.startsWith('NOSCRIPT')) throw error;
      return run('eval', script, keys, values);
    }
  };

  const reconnect = createReconnect(redis);
  return async (script, keys, values) => {
    try {
      return await runLoaded(script, keys, values);
    } catch (error) {
      // A replica has written nothing, so a repeat is safe.
      if (!isRefusalOfReplica(error)) throw error;
      if (!reconnect()) throw explainReplica(error);
    }
    return runLoaded(script, keys, values).catch((error: unknown) => {
      throw isRefusalOfReplica(error) ? explainReplica(error) : error;
    });
  };
}

/** Calls a client, and refuses one that takes other arguments, or that returns no promise because it takes a callback. */
async function waitForReply(call: () => unknown): Promise<unknown> {
  try {
    const reply = call();
    const returnsPromise: boolean = hasMethods(reply, 'then');
    return returnsPromise ? await reply : refuseClient('return a promise', kindOrNumber(reply));
  } catch (error) {
    // The failures of a connection are not TypeErrors, or have a cause.
    const { name, message, cause } = readError(error) ?? {};
    if (name !== 'TypeError' || cause !== undefined) throw error;
    return refuseClient('accept the arguments of a script', `the TypeError "${message}"`, error);
  }
}

/** A Redis client may be set to return numbers as text or as buffers. */
function toNumber(reply: unknown): number {
  return Number.parseFloat(String(reply));
}

function refuseClient(expected: string, got: string, cause?: unknown): never {
  const rule = `to ${expected}, got ${got}`;
  const message = `Expected the client \`redis\` ${rule}; ${CLIENT_ADVICE}`;
  throw new ConfigurationError(message, { option: 'redis', rule, cause });
}

interface IoredisCluster {
  pipeline(commands: unknown[][]): { exec(): Promise<[error: Error | null, reply: unknown][] | null> };
}

/**
 * With `enableAutoPipelining`, a cluster of ioredis puts all commands of one tick into one pipeline per node, and all of them fail
 * if one has keys of several slots (https://github.com/redis/ioredis/issues/2109). So each of our scripts gets its own pipeline.
 */
function isIoredisCluster(redis: RedisClient): redis is RedisClient & IoredisCluster {
  return hasMethods(redis, 'pipeline', 'evalsha') && Reflect.get(redis, 'isCluster') === true;
}

type Command = 'eval' | 'evalsha';

type Send = (command: Command, script: string, keys: readonly string[], values: readonly string[]) => unknown;

function createSend(redis: RedisClient): Send {
  if (hasMethods(redis, 'eval', 'evalSha')) {
    return (command, script, keys, values) => {
      const options = { keys: [...keys], arguments: [...values] };
      return command === 'eval' ? redis.eval(script, options) : redis.evalSha(script, options);
    };
  }
  if (isIoredisCluster(redis)) {
    return async (command, script, keys, values) => {
      const results = await redis.pipeline([[command, script, keys.length, ...keys, ...values]]).exec();
      const [error, reply] = results?.[0] ?? [];
      if (error) throw error;
      return reply;
    };
  }
  if (hasMethods(redis, 'eval', 'evalsha')) {
    return (command, script, keys, values) => redis[command](script, keys.length, ...keys, ...values);
  }
  return refuseOption('redis', CLIENT_RULE, redis);
}

import { createHash } from 'node:crypto';
import { refuseOption } from '../common/check-options.ts';
import { readError } from '../common/foreign.ts';
import { hasMethods, option } from '../common/validation.ts';

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

/** `createScriptRunner` checks the methods. */
export const redisOption = option<RedisClient>(
  CLIENT_RULE,
  (redis) => typeof Object(redis).eval === 'function',
);

/** A Lua script, and the SHA-1 under which Redis keeps it. */
export interface RedisScript {
  readonly source: string;
  readonly sha1: string;
}

/** Runs a script. In a cluster all its keys must be of one hash slot. */
export type RunScript = (
  script: RedisScript,
  keys: readonly string[],
  values: readonly string[],
) => Promise<unknown>;

export function createScript(source: string): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

/** Reads a number of a reply; a Redis client may be set to return numbers as text or as buffers. */
export function toNumber(reply: unknown): number {
  return Number.parseFloat(String(reply));
}

/** Builds the function that runs scripts on either client. */
export function createScriptRunner(redis: RedisClient): RunScript {
  const send = createSend(redis);
  return async (script, keys, values) => {
    try {
      return await send('evalsha', script.sha1, keys, values);
    } catch (error) {
      // After NOSCRIPT nothing has run, so sending the whole script repeats nothing.
      if (!readError(error)?.message.startsWith('NOSCRIPT')) throw error;
      return send('eval', script.source, keys, values);
    }
  };
}

type Send = (
  command: 'eval' | 'evalsha',
  script: string,
  keys: readonly string[],
  values: readonly string[],
) => Promise<unknown>;

function createSend(redis: RedisClient): Send {
  if (hasMethods(redis, 'eval', 'evalSha')) {
    return (command, script, keys, values) => {
      const options = { keys: [...keys], arguments: [...values] };
      return command === 'eval' ? redis.eval(script, options) : redis.evalSha(script, options);
    };
  }
  if (hasMethods(redis, 'eval', 'evalsha')) {
    return (command, script, keys, values) => redis[command](script, keys.length, ...keys, ...values);
  }
  return refuseOption('redis', CLIENT_RULE, redis);
}

import { createHash } from 'node:crypto';
import { hasMethods } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

/** The methods that this package calls on a client, pool, sentinel or cluster of the package `redis` (node-redis). */
export interface NodeRedisClient {
  /** Runs a script by its text. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Runs a script by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** The methods that this package calls on a client or cluster of the package `ioredis`. */
export interface IoredisClient {
  /** Runs a script by its text. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Runs a script by its SHA-1. */
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** A connected client of `redis` or `ioredis`; its methods tell which of the two it is. */
export type RedisClient = NodeRedisClient | IoredisClient;

/** A Lua script, and the SHA-1 under which Redis keeps it. */
export interface RedisScript {
  readonly source: string;
  readonly sha1: string;
}

/** Runs a script once. In a cluster all keys must be of one hash slot. Rejects with the client's own error. */
export type RunScript = (
  script: RedisScript,
  keys: readonly string[],
  values: readonly string[],
) => Promise<unknown>;

/** Prepares a script for {@link RunScript}. */
export function createScript(source: string): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

/**
 * Hides the difference between the two clients.
 *
 * @param redis - a connected client of `redis` or `ioredis`
 * @returns a function that runs a script on it
 * @throws ConfigurationError if it is neither
 */
export function createScriptRunner(redis: RedisClient): RunScript {
  const send = createSend(redis);
  return async (script, keys, values) => {
    try {
      return await send('evalsha', script.sha1, keys, values);
    } catch (error) {
      // A server that does not know the script ran nothing, so sending the whole script repeats nothing.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
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
  throw new ConfigurationError(
    `Expected \`redis\` to be a client of \`redis\` or \`ioredis\`, got ${kindOf(redis)}`,
  );
}

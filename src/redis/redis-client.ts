import { createHash } from 'node:crypto';
import { hasMethods } from '../common/option-checks.ts';
import { kindOf } from '../common/validation.ts';
import { ConfigurationError } from '../errors.ts';

/** What this package uses of a client, pool, sentinel or cluster of the package `redis` (node-redis). */
export interface NodeRedisClient {
  /** Runs a script by its text. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Runs a script by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** What this package uses of a client or cluster of the package `ioredis`. */
export interface IoredisClient {
  /** Runs a script by its text. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Runs a script by its SHA-1. */
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
}

/** A connected client of `redis` or `ioredis`; which of the two is seen from its shape. */
export type RedisClient = NodeRedisClient | IoredisClient;

/** A Lua script and the SHA-1 that Redis knows it by. */
export interface RedisScript {
  readonly source: string;
  readonly sha1: string;
}

/** One run of a script. In a cluster all of its keys must be of one hash slot. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly arguments: readonly string[];
}

/** Runs scripts on either client. */
export interface ScriptRunner {
  /** Runs a script once. Rejects with the client's own error. */
  run(script: RedisScript, call: ScriptCall): Promise<unknown>;
  /**
   * Runs a script once per call in one round trip; every call is atomic, all together are not.
   * The replies have the order of the calls. When calls fail it rejects with the first one's error, after all have ended.
   */
  runAll(script: RedisScript, calls: readonly ScriptCall[]): Promise<readonly unknown[]>;
}

/** Prepares a script for {@link ScriptRunner}. */
export function redisScript(source: string): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') };
}

/** Sends one command. */
type Send = (command: 'eval' | 'evalsha', script: string, call: ScriptCall) => Promise<unknown>;

/**
 * Hides the difference between the two clients.
 *
 * @param redis - a connected client of `redis` or `ioredis`
 * @returns what runs scripts on it
 * @throws ConfigurationError if it is neither
 */
export function scriptRunner(redis: RedisClient): ScriptRunner {
  const send = createSend(redis);
  const run = async (script: RedisScript, call: ScriptCall): Promise<unknown> => {
    try {
      return await send('evalsha', script.sha1, call);
    } catch (error) {
      // A server that does not know the script ran nothing, so sending the whole script repeats nothing.
      if (error instanceof Error && error.message.startsWith('NOSCRIPT')) {
        return send('eval', script.source, call);
      }
      throw error;
    }
  };
  // Both clients write all commands of one tick without waiting for the first reply.
  const runAll = async (script: RedisScript, calls: readonly ScriptCall[]): Promise<readonly unknown[]> => {
    const outcomes = await Promise.allSettled(calls.map((call) => run(script, call)));
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  };
  return { run, runAll };
}

function createSend(redis: RedisClient): Send {
  if (hasMethods(redis, 'eval', 'evalSha')) {
    return (command, script, call) => {
      const options = { keys: [...call.keys], arguments: [...call.arguments] };
      return command === 'eval' ? redis.eval(script, options) : redis.evalSha(script, options);
    };
  }
  if (hasMethods(redis, 'eval', 'evalsha')) {
    return (command, script, { keys, arguments: input }) =>
      redis[command](script, keys.length, ...keys, ...input);
  }
  throw new ConfigurationError(
    `Expected \`redis\` to be a client of \`redis\` or \`ioredis\`, got ${kindOf(redis)}`,
  );
}

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
  /** True for a cluster. */
  readonly isCluster: boolean;
  /** Runs a script by its text. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Runs a script by its SHA-1. */
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Collects commands that are sent together. */
  pipeline(commands: unknown[][]): { exec(): Promise<[error: Error | null, reply: unknown][] | null> };
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

type Command = 'eval' | 'evalsha';
type Outcome = PromiseSettledResult<unknown>;
/** Sends all calls without waiting for the first reply. */
type Send = (command: Command, script: string, calls: readonly ScriptCall[]) => Promise<Outcome[]>;

/**
 * Hides the difference between the two clients.
 *
 * @param redis - a connected client of `redis` or `ioredis`
 * @throws ConfigurationError when it is neither
 */
export function scriptRunner(redis: RedisClient): ScriptRunner {
  const send = sender(redis);
  const runAll = async (script: RedisScript, calls: readonly ScriptCall[]): Promise<readonly unknown[]> => {
    const outcomes = await send('evalsha', script.sha1, calls);
    const unknown = calls.flatMap((call, index) =>
      isUnknownScript(outcomes[index]) ? [{ call, index }] : [],
    );
    if (unknown.length > 0) {
      // A server that does not know the script ran nothing, so sending these calls again repeats nothing.
      const resent = unknown.map(({ call }) => call);
      const resentOutcomes = await send('eval', script.source, resent);
      unknown.forEach(({ index }, position) => {
        const outcome = resentOutcomes[position];
        if (outcome !== undefined) outcomes[index] = outcome;
      });
    }
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  };
  return { runAll, run: async (script, call) => (await runAll(script, [call]))[0] };
}

function isUnknownScript(outcome: Outcome | undefined): boolean {
  return (
    outcome?.status === 'rejected' &&
    outcome.reason instanceof Error &&
    outcome.reason.message.startsWith('NOSCRIPT')
  );
}

function sender(redis: RedisClient): Send {
  if (hasMethods(redis, 'eval', 'evalSha')) return nodeRedisSender(redis);
  if (hasMethods(redis, 'eval', 'evalsha', 'pipeline')) {
    return redis.isCluster ? ioredisClusterSender(redis) : ioredisSender(redis);
  }
  throw new ConfigurationError(
    `Expected \`redis\` to be a client of \`redis\` or \`ioredis\`, got ${kindOf(redis)}`,
  );
}

/** This client writes all commands of one tick together, and a cluster or pool of it picks the node by the first key. */
function nodeRedisSender(redis: NodeRedisClient): Send {
  return (command, script, calls) =>
    Promise.allSettled(
      calls.map((call) => {
        const options = { keys: [...call.keys], arguments: [...call.arguments] };
        return command === 'eval' ? redis.eval(script, options) : redis.evalSha(script, options);
      }),
    );
}

function ioredisSender(redis: IoredisClient): Send {
  return async (command, script, calls) => {
    const commands = calls.map((call) => [
      command,
      script,
      call.keys.length,
      ...call.keys,
      ...call.arguments,
    ]);
    const replies = await redis.pipeline(commands).exec();
    if (replies?.length !== calls.length)
      throw new Error(`Expected ${calls.length} replies of Redis, got ${replies?.length ?? 'none'}`);
    return replies.map(([error, value]) =>
      error === null ? { status: 'fulfilled', value } : { status: 'rejected', reason: error },
    );
  };
}

/** A pipeline of this client serves one node only; separate commands go to the node of their key, all at once too. */
function ioredisClusterSender(redis: IoredisClient): Send {
  return (command, script, calls) =>
    Promise.allSettled(
      calls.map((call) => redis[command](script, call.keys.length, ...call.keys, ...call.arguments)),
    );
}

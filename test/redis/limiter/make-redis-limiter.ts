import type { AcquireOptions, Permit } from '../../../src/limiter/limiter.ts';
import { RedisLimiter, type RedisLimiterOptions } from '../../../src/redis/index.ts';
import type { NodeRedisClient } from '../../../src/redis/redis-client.ts';
import { bucketOf, type Call, observe, toAcquire } from '../../limiter/make-limiter.ts';
import { settled } from '../../support/settled.ts';
import { useVirtualTime } from '../../support/virtual-time.ts';

/** The numbers of one command of a limiter, in the order of the script's arguments. */
const NUMBERS = [
  'limit',
  'maxLimit',
  'announcedLimit',
  'pauseMs',
  'recovers',
  'shareLeft',
  'reserve',
  'interactive',
  'wanted',
  'firstNumber',
] as const;

interface Command extends Readonly<Record<(typeof NUMBERS)[number], number>> {
  /** Pairs of a token's number and the milliseconds until it is free. */
  readonly tokens: readonly (readonly number[])[];
}

/** The reply of the script; every field is optional. */
export interface ScriptReply {
  readonly limit?: number;
  readonly free?: number;
  readonly pauseLeftMs?: number;
  readonly granted?: number;
  /** When more tokens can be granted. Default: 0, at once. */
  readonly askInMs?: number;
}

type Reply = (command: Command, keys: readonly string[]) => ScriptReply | Promise<ScriptReply> | Error;

/** A client whose replies a test decides; it knows no Lua. */
export class ScriptedRedis implements NodeRedisClient {
  readonly commands: Command[] = [];
  readonly keys: (readonly string[])[] = [];
  reply: Reply = grantAll;

  eval(): Promise<unknown> {
    return Promise.reject(new Error('Expected the script to be known'));
  }

  async evalSha(_sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown> {
    const command = parseCommand(options.arguments);
    this.commands.push(command);
    this.keys.push(options.keys);
    const reply = await this.reply(command, options.keys);
    if (reply instanceof Error) throw reply;
    const { limit = 10, free = 0, pauseLeftMs = 0, granted = 0, askInMs = 0 } = reply;
    // Never more than requested, like the script.
    return [limit, free, pauseLeftMs, Math.min(granted, command.wanted), askInMs];
  }
}

function parseCommand([, ...input]: readonly string[]): Command {
  const numbers = input.map(Number);
  const named = Object.fromEntries(NUMBERS.map((name, index) => [name, numbers[index]]));
  const rest = numbers.slice(NUMBERS.length);
  const tokens = rest.flatMap((number, index) => (index % 2 === 0 ? [[number, rest[index + 1] ?? 0]] : []));
  // Safe cast: the script has these arguments, and every command sends all of them.
  return { ...named, tokens } as unknown as Command;
}

/** Grants a token to every call at once. */
export function grantAll({ wanted }: Command): ScriptReply {
  return { granted: wanted };
}

/** Lets every call wait for 900 ms. */
export function grantNone(): ScriptReply {
  return { askInMs: 900 };
}

export const refuseConnection = () => new Error('connect ECONNREFUSED 127.0.0.1:6379');
export const neverReply = () => new Promise<never>(() => {});

/** Time from a failed command until every token from Redis is surely free again. */
export const QUIET_MS = 1_000 + 500 + 1_010;

export const bucket = bucketOf(10);

/** A limiter in virtual time on a scripted Redis, and short ways to use it. The limit is 10 unless a call says otherwise. */
export function makeRedisLimiter(options: Partial<RedisLimiterOptions> = {}) {
  const clock = useVirtualTime();
  const redis = new ScriptedRedis();
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const logger = { debug: log, info: log, warn: log, error: log };
  const limiter = new RedisLimiter({ redis, logger, ...options });

  function acquire(overrides: Partial<AcquireOptions> = {}): Call {
    return observe(limiter.acquire(toAcquire(10, overrides)));
  }

  /** Makes a call that is granted and sent at once. */
  async function sent(overrides: Partial<AcquireOptions> = {}): Promise<Permit> {
    const call = acquire(overrides);
    await settled();
    if (!call.permit) throw new Error('Expected a token, got none');
    call.permit.send();
    await settled();
    return call.permit;
  }

  return { clock, redis, limiter, acquire, sent, lines };
}

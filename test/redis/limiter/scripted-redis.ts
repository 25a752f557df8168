import type { NodeRedisClient } from '../../../src/redis/index.ts';
import type { SyncRequest } from '../../../src/redis/limiter-sync.ts';

/** What a limiter said and wanted in one sync; a probe says and wants nothing. */
export type Asked = SyncRequest;

const PROBE = { interactive: 0, background: 0, leases: [], recovers: false };

/** What the script is made to answer; everything may be left out. */
export interface Answered {
  readonly limit?: number;
  readonly announced?: number;
  readonly free?: number;
  readonly pausedForMs?: number;
  /** Left out: nothing more is wanted. */
  readonly askInMs?: number;
  /** In how many milliseconds each granted token may be used. */
  readonly starts?: readonly number[];
}

type Reply = (asked: Asked, keys: readonly string[]) => Answered | Promise<Answered> | Error;

/** A client whose answers a test decides; it knows no Lua. */
export class ScriptedRedis implements NodeRedisClient {
  readonly asked: Asked[] = [];
  readonly keys: (readonly string[])[] = [];
  reply: Reply;

  constructor(reply: Reply = grantAll) {
    this.reply = reply;
  }

  eval(): Promise<unknown> {
    return Promise.reject(new Error('Expected the script to be known'));
  }

  async evalSha(_sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown> {
    const [input] = options.arguments;
    // Sound: the limiter sends nothing else.
    const asked = (input === undefined ? PROBE : JSON.parse(input)) as Asked;
    this.asked.push(asked);
    this.keys.push(options.keys);
    const answer = await this.reply(asked, options.keys);
    if (answer instanceof Error) throw answer;
    // Never more than was asked for, as the script has it.
    const starts = answer.starts?.slice(0, asked.interactive + asked.background);
    return JSON.stringify({ limit: 10, free: 0, pausedForMs: 0, ...answer, starts });
  }
}

/** Gives every call that asks a token at once. */
export function grantAll({ interactive, background }: Asked): Answered {
  return { starts: Array.from({ length: interactive + background }, () => 0) };
}

import type { NodeRedisClient } from '../../../src/redis/index.ts';

/** What a limiter told and asked in one exchange, as far as tests look at it. */
export interface Asked {
  readonly limit: number;
  readonly maxLimit: number;
  readonly interactive: number;
  readonly background: number;
  readonly reserve: number;
  readonly firstNumber: number;
  readonly share: number;
  readonly isBack: boolean;
  readonly pauseMs: number;
  readonly announced: number;
  readonly leases: readonly { readonly kind: string; readonly number: number; readonly backInMs: number }[];
}

/** What the script is made to answer; everything may be left out. */
export interface Answered {
  readonly limit?: number;
  readonly announced?: number;
  readonly free?: number;
  readonly pausedForMs?: number;
  /** -1: nothing more is wanted. */
  readonly askInMs?: number;
  /** In how many milliseconds each granted token may be used. */
  readonly starts?: readonly number[];
  readonly lane?: 'interactive' | 'background';
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
    const asked = parse(options.arguments);
    this.asked.push(asked);
    this.keys.push(options.keys);
    const answer = await this.reply(asked, options.keys);
    if (answer instanceof Error) throw answer;
    const { limit = 10, announced = 0, free = 0, pausedForMs = 0, askInMs = -1, starts = [] } = answer;
    const lane = answer.lane === 'background' ? 0 : 1;
    // Never more than was asked for, as the script has it.
    const granted = starts.slice(0, asked.interactive + asked.background);
    return [limit, announced, free, pausedForMs, askInMs, granted.flatMap((start) => [start, lane])];
  }
}

/** Gives every call that asks a token at once. */
export function grantAll({ interactive, background }: Asked): Answered {
  return { starts: Array.from({ length: interactive + background }, () => 0) };
}

function parse(values: readonly string[]): Asked {
  const at = (position: number) => Number(values[position - 1]);
  const leases = [];
  for (let index = 14; index < values.length; index += 3) {
    const [kind = '', number, backInMs] = values.slice(index, index + 3);
    leases.push({ kind, number: Number(number), backInMs: Number(backInMs) });
  }
  return {
    limit: at(2),
    maxLimit: at(3),
    interactive: at(4),
    background: at(5),
    reserve: at(6),
    firstNumber: at(7),
    share: at(8),
    isBack: at(9) === 1,
    pauseMs: at(11),
    announced: at(13),
    leases,
  };
}

import { LuaFactory } from 'wasmoon';
import type { NodeRedisClient } from '../../src/redis/redis-client.ts';

/**
 * Lists go in and out as one text, because the interpreter overflows its stack if a function gets or returns many values. As in
 * Redis, `unpack` is global, a list is a table, and nil becomes false.
 */
const PRELUDE = String.raw`
unpack = table.unpack
local function split(text)
  local list = {}
  for item in string.gmatch(text, '([^\n]*)\n') do list[#list + 1] = item end
  return list
end
redis = {
  call = function(...)
    local kind, reply = string.match(host(table.concat({ ... }, '\n') .. '\n'), '^(%a)(.*)$')
    if kind == 'l' then return split(reply) end
    if kind == 'i' then return tonumber(reply) end
    return kind == 't' and reply
  end,
}
function run(script, keys, input)
  KEYS, ARGV = split(keys), split(input)
  return table.concat(script(), '\n')
end
`;

type Reply = string | number | readonly string[] | undefined;

function join(list: readonly string[]): string {
  return list.map((item) => `${item}\n`).join('');
}

const engine = await new LuaFactory().createEngine();
engine.doStringSync(PRELUDE);
// Sound: the prelude defines this function.
const run = engine.global.get('run') as (script: unknown, keys: string, input: string) => string;
const compiled = new Map<string, unknown>();

/** One engine serves all emulators, because a script runs to its end before the next one starts. */
let host: RedisEmulator | undefined;
engine.global.set('host', (command: string) => {
  const reply = host?.call(command.split('\n').slice(0, -1));
  if (reply === undefined) return 'n';
  if (typeof reply === 'number') return `i${reply}`;
  return typeof reply === 'string' ? `t${reply}` : `l${join(reply)}`;
});

const INFINITIES: Record<string, number> = {
  '-inf': Number.NEGATIVE_INFINITY,
  '+inf': Number.POSITIVE_INFINITY,
};

function toScore(text: string): number {
  const score = INFINITIES[text] ?? Number(text);
  if (Number.isNaN(score)) throw new Error(`ERR value is not a valid float: ${text}`);
  return score;
}

/** Builds the check of a bound such as `5`, `(5` (exclusive) or `-inf`. */
function parseBound(text: string, isWithin: (score: number, bound: number) => boolean) {
  const isExclusive = text.startsWith('(');
  const bound = toScore(isExclusive ? text.slice(1) : text);
  return (score: number) => isWithin(score, bound) && !(isExclusive && score === bound);
}

interface Entry {
  readonly value: string | Map<string, number>;
  expiresAt: number;
}

/** Escapes what would end an item of a list or a text of the interpreter. Different keys stay different. */
function escapeKey(key: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows these characters in keys.
  return key.replace(/[\u0000-\u001f%]/g, encodeURIComponent);
}

/**
 * An in-memory Redis that runs the scripts of the package themselves, with a Lua interpreter. It knows the commands that the scripts
 * of the limiter and of the store use, and its time is `performance.now()`, which tests fake.
 */
export class RedisEmulator implements NodeRedisClient {
  /** Milliseconds by which the clock of this Redis is ahead of `performance.now()`. */
  clockAheadMs = 1_000_000;
  readonly #keys = new Map<string, Entry>();

  async eval(source: string, { keys, arguments: input }: { keys: string[]; arguments: string[] }) {
    return this.run(source, keys, input);
  }

  evalSha(): Promise<unknown> {
    return Promise.reject(new Error('NOSCRIPT No matching script.'));
  }

  /** Runs a script that returns a list of numbers. Like Redis, it cuts them to whole numbers. */
  run(source: string, keys: readonly string[], input: readonly string[]): number[] {
    let script = compiled.get(source);
    if (script === undefined) {
      script = engine.doStringSync(`return function() ${source}\nend`);
      compiled.set(source, script);
    }
    host = this;
    const reply = run(script, join(keys.map(escapeKey)), join(input));
    return reply === '' ? [] : reply.split('\n').map((number) => Math.trunc(Number(number)));
  }

  /** Runs one command. */
  call([name = '', ...input]: readonly string[]): Reply {
    const command = this.#commands[name];
    if (command === undefined) throw new Error(`Expected a command that the emulator knows, got ${name}`);
    return command(input);
  }

  get #now(): number {
    return Math.floor(performance.now() + this.clockAheadMs);
  }

  #find(key: string): Entry | undefined {
    const entry = this.#keys.get(key);
    if (entry === undefined || entry.expiresAt > this.#now) return entry;
    this.#keys.delete(key);
    return undefined;
  }

  #findScores(key: string): Map<string, number> {
    const value = this.#find(key)?.value ?? new Map<string, number>();
    if (typeof value === 'string')
      throw new Error('WRONGTYPE Operation against a key with the wrong kind of value');
    return value;
  }

  #setScore(key: string, member: string, score: number): void {
    const scores = this.#findScores(key);
    if (scores.size === 0) this.#keys.set(key, { value: scores, expiresAt: Number.POSITIVE_INFINITY });
    scores.set(member, score);
  }

  #removeMembers(key: string, members: readonly string[]): number {
    const scores = this.#findScores(key);
    const removed = members.filter((member) => scores.delete(member)).length;
    if (scores.size === 0) this.#keys.delete(key);
    return removed;
  }

  /** Returns the members of a sorted set, in its order, with their scores. */
  #sort(key: string): [member: string, score: number][] {
    return [...this.#findScores(key)].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
  }

  /** Returns the members with a score from `min` to `max`. */
  #select(key: string, min: string, max: string): string[] {
    const isAbove = parseBound(min, (score, bound) => score >= bound);
    const isBelow = parseBound(max, (score, bound) => score <= bound);
    const found = this.#sort(key).filter(([, score]) => isAbove(score) && isBelow(score));
    return found.map(([member]) => member);
  }

  readonly #commands: Record<string, (input: readonly string[]) => Reply> = {
    TIME: () => [`${Math.floor(this.#now / 1_000)}`, `${(this.#now % 1_000) * 1_000}`],
    GET: ([key = '']) => {
      const value = this.#find(key)?.value;
      return typeof value === 'string' ? value : undefined;
    },
    SET: ([key = '', value = '', px, ms = '', nx]) => {
      if (px !== 'PX') throw new Error(`Expected SET with PX, got ${px}`);
      if (nx === 'NX' && this.#find(key) !== undefined) return undefined;
      this.#keys.set(key, { value, expiresAt: this.#now + Number(ms) });
      return 'OK';
    },
    EXISTS: ([key = '']) => (this.#find(key) ? 1 : 0),
    PTTL: ([key = '']) => {
      const expiresAt = this.#find(key)?.expiresAt;
      if (expiresAt === undefined) return -2;
      return expiresAt === Number.POSITIVE_INFINITY ? -1 : expiresAt - this.#now;
    },
    PEXPIRE: ([key = '', ms = '']) => {
      const entry = this.#find(key);
      if (entry === undefined) return 0;
      entry.expiresAt = this.#now + Number(ms);
      return 1;
    },
    ZADD: ([key = '', score = '', member = '']) => {
      const isNew = !this.#findScores(key).has(member);
      this.#setScore(key, member, toScore(score));
      return isNew ? 1 : 0;
    },
    ZREM: ([key = '', ...members]) => this.#removeMembers(key, members),
    ZREMRANGEBYSCORE: ([key = '', min = '', max = '']) =>
      this.#removeMembers(key, this.#select(key, min, max)),
    ZRANGEBYSCORE: ([key = '', min = '', max = '']) => this.#select(key, min, max),
    ZRANGE: ([key = '', start = '', stop = '', withScores]) => {
      const end = stop === '-1' ? undefined : Number(stop) + 1;
      const found = this.#sort(key).slice(Number(start), end);
      return found.flatMap(([member, score]) => (withScores ? [member, `${score}`] : [member]));
    },
    ZCARD: ([key = '']) => this.#findScores(key).size,
  };
}

import { createHash } from 'node:crypto';
import { type BucketId, formatBucketKey, MAX_RETURN_MS, RETURN_MS } from '../limiter/limiter.ts';
import { createScript } from './redis-client.ts';

/** A request must be sent within this time after Redis granted its token. */
export const SEND_WITHIN_MS = 1_000;
/** Time from the grant of a token until it comes back, unless its process reports an earlier return. */
export const KEEP_TOKEN_MS = SEND_WITHIN_MS + MAX_RETURN_MS;
/**
 * Tokens whose requests were sent or answered are collected for this long, and then reported to Redis together. This delays no
 * request, because a token comes back only a second after its response.
 */
export const REPORT_WITHIN_MS = 300;
/** After one process lost Redis, all keep to their shares for this long, so that the slowest can reconnect. */
const AFTER_OUTAGE_MS = 3_000;
const KEEP_LIMIT_MS = 60 * 60 * 1_000;
const KEEP_MS = 60_000;

/**
 * Reports the tokens of one process to Redis, and asks for more. All times are in milliseconds on the clock of Redis.
 *
 * `TOKENS` lists the tokens that are out, scored by the time when they come back. `PAUSE`, `LIMIT` and `OUTAGE` expire when the
 * pause, the announced limit and the time after an outage are over.
 *
 * Arguments: `me` is this process; `announced` and `pause` are 0 if there are none, and `recovers` is 1 after an outage.
 * `share_left` is the number of tokens that the process could still take if each process used only its own share. `reserve` is the
 * number of tokens that are kept for interactive calls, `wanted` the number of calls that need a token, and `interactive` the number
 * of interactive calls among these. New tokens are numbered from `first`. The last arguments are, for each changed token, its number
 * and the milliseconds until its return.
 *
 * Reply: limit, free tokens, rest of the pause, number of granted tokens, and the milliseconds until more can be
 * granted (0: now).
 */
export const LIMITER_SCRIPT = createScript(
  `
local TOKENS, PAUSE, LIMIT, OUTAGE = unpack(KEYS)
local me, numbers = ARGV[1], {}
for index = 2, #ARGV do numbers[index - 1] = tonumber(ARGV[index]) end
local limit, max_limit, announced, pause, recovers, share_left, reserve, interactive, wanted, first =
  unpack(numbers, 1, 10)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

for index = 11, #numbers, 2 do
  redis.call('ZADD', TOKENS, now + numbers[index + 1], me .. ':' .. numbers[index])
end
redis.call('ZREMRANGEBYSCORE', TOKENS, '-inf', now)
-- If the clock of Redis went back, some tokens seem to come back too late. Set them to the latest possible time.
local latest = now + ${KEEP_TOKEN_MS}
for _, token in ipairs(redis.call('ZRANGEBYSCORE', TOKENS, '(' .. latest, '+inf')) do
  redis.call('ZADD', TOKENS, latest, token)
end

if announced > 0 then redis.call('SET', LIMIT, announced, 'PX', ${KEEP_LIMIT_MS}) end
if pause > math.max(0, redis.call('PTTL', PAUSE)) then redis.call('SET', PAUSE, '', 'PX', pause) end
if recovers == 1 then redis.call('SET', OUTAGE, '', 'PX', ${AFTER_OUTAGE_MS}) end
limit = math.min(tonumber(redis.call('GET', LIMIT) or limit), max_limit)
local pause_left = math.max(0, redis.call('PTTL', PAUSE))

-- If the Redis client lost the first reply and sent this command again, no request has used the tokens of the first run.
wanted = math.min(wanted, limit)
for number = first, first + wanted - 1 do redis.call('ZREM', TOKENS, me .. ':' .. number) end

-- One command takes at most half of the free tokens, so that the other processes get some, too.
local free = limit - redis.call('ZCARD', TOKENS)
local usable = math.max(0, math.min(interactive, free), math.min(wanted, free - reserve))
if redis.call('EXISTS', OUTAGE) == 1 then usable = math.min(usable, share_left) end
if pause_left > 0 then usable = 0 end
local granted = math.min(usable, math.ceil(free / 2))
for number = first, first + granted - 1 do redis.call('ZADD', TOKENS, latest, me .. ':' .. number) end
redis.call('PEXPIRE', TOKENS, ${KEEP_MS})

local wait = 0
if granted == usable then
  wait = math.max(1, (redis.call('ZRANGE', TOKENS, 0, 0, 'WITHSCORES')[2] or now) - now)
  -- The first token that comes back has no response yet. A response that is reported later may let it come back from then on.
  if wait > ${RETURN_MS} then wait = ${RETURN_MS - REPORT_WITHIN_MS} end
  wait = math.max(wait, pause_left)
end
return { limit, math.max(0, free - granted), pause_left, granted, wait }
`,
  () => 5,
);

/** The numbers of a command that reports nothing and asks for no token: `limit` and `max_limit` are 1, the others 0. */
export const PROBE = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/** Names the Redis keys of one bucket. A cluster places a key by the text in braces, so all these keys share a slot. */
export function formatKeys(keyPrefix: string, bucket: BucketId): string[] {
  const hash = createHash('sha256').update(formatBucketKey(bucket)).digest('hex');
  const tag = `${bucket.endpoint.replace(/[{}]/g, '')}:${hash.slice(0, 32)}`;
  // The number separates versions of the package that store different data.
  return ['tokens', 'pause', 'limit', 'outage'].map((name) => `${keyPrefix}{${tag}}:4:${name}`);
}

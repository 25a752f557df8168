import { createHash } from 'node:crypto';
import { kindOf } from '../common/validation.ts';
import { type BucketId, formatBucketKey, MAX_RETURN_MS, RETURN_MS } from '../limiter/limiter.ts';
import { createScript, toNumber } from './redis-client.ts';

/** Redis grants a token up to this long before it may be used, so that the round trip delays no request. */
export const HORIZON_MS = 200;
/** A request must be sent within this time after its token became usable; a process that needs longer renews the token. */
export const SEND_WITHIN_MS = 100;
export const RENEW_MS = 1_000;
const ASK_AHEAD_MS = 100;
/** A process that still waits asks again after this time at the earliest, so that others get their turn. */
const MIN_ASK_MS = 50;
const MIN_ASK_AFTER_OUTAGE_MS = 100;
/** A waiting process whose next command is late by more than this loses its place. The process may be dead. */
const MAX_LATE_MS = 500;
/** After one process lost Redis, all keep to their shares for this long, so that the slowest can reconnect. */
const AFTER_OUTAGE_MS = 3_000;
const KEEP_LIMIT_MS = 60 * 60 * 1_000;
const KEEP_MS = 60_000;
/** Maximum number of tokens of one command. Redis serves no other client while a script runs. */
const MAX_PER_RUN = 1_000;

/**
 * Reports the tokens of one process to Redis, and asks for more. All times are in milliseconds on the clock of Redis.
 *
 * Redis keys: `TOKENS` lists the tokens that are out, scored by the time when they come back. `WAITERS` lists the processes that
 * wait, scored by the number of tokens they got, and `DEADLINES` the same processes, scored by when they must ask again.
 * `PAUSE`, `LIMIT` and `OUTAGE` expire when the pause, the announced limit and the time after an outage are over.
 *
 * Arguments: `me` is this process; `announced` and `pause` are 0 if there are none, and `recovers` is 1 after an outage.
 * `share_left` is the number of tokens that the process could still take if each process used only its own share. `wanted` is the
 * number of calls of the process that need a token, `interactive` the number of interactive calls among these, and `reserve` the
 * number of tokens that are kept for interactive calls. New tokens are numbered from `first`. The last arguments are, for each
 * changed token, its number and the milliseconds until its return.
 *
 * Reply, see `parseReply`: limit, free tokens, rest of the pause, milliseconds until the process asks again (0: never);
 * then for each new token the milliseconds until it may be used.
 */
export const LIMITER_SCRIPT = createScript(`
local TOKENS, WAITERS, DEADLINES, PAUSE, LIMIT, OUTAGE = unpack(KEYS)
local me, numbers = ARGV[1], {}
for index = 2, #ARGV do numbers[index - 1] = tonumber(ARGV[index]) end
local limit, max_limit, announced, pause, recovers, share_left, reserve, interactive, wanted, first =
  unpack(numbers, 1, 10)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Store when the changed tokens come back.
for index = 11, #numbers, 2 do
  redis.call('ZADD', TOKENS, now + numbers[index + 1], me .. ':' .. numbers[index])
end
redis.call('ZREMRANGEBYSCORE', TOKENS, '-inf', now)
-- If the clock of Redis went back, some tokens seem to come back too late. Set them to the latest possible time, and empty the
-- list of waiting processes.
local latest = now + ${RENEW_MS + MAX_RETURN_MS}
for _, token in ipairs(redis.call('ZRANGEBYSCORE', TOKENS, '(' .. latest, '+inf')) do
  redis.call('ZADD', TOKENS, latest, token)
  redis.call('DEL', WAITERS, DEADLINES)
end

-- Store the limit, the pause and the outage, which hold for all processes.
if announced > 0 then redis.call('SET', LIMIT, announced, 'PX', ${KEEP_LIMIT_MS}) end
if pause > math.max(0, redis.call('PTTL', PAUSE)) then redis.call('SET', PAUSE, '', 'PX', pause) end
if recovers == 1 then redis.call('SET', OUTAGE, '', 'PX', ${AFTER_OUTAGE_MS}) end
limit = math.min(tonumber(redis.call('GET', LIMIT) or limit), max_limit)
local pause_left = math.max(0, redis.call('PTTL', PAUSE))
local is_after_outage = redis.call('EXISTS', OUTAGE) == 1

-- The process that got the fewest tokens comes first, and a new process starts with the lowest count. A new process that has only
-- background calls starts 0.5 higher. So a process with interactive calls comes before it and can use the reserved token.
redis.call('ZREMRANGEBYSCORE', DEADLINES, '-inf', now)
redis.call('ZINTERSTORE', WAITERS, 2, WAITERS, DEADLINES, 'WEIGHTS', 1, 0)
local fewest = redis.call('ZRANGE', WAITERS, 0, 0, 'WITHSCORES')[2] or 0
redis.call('ZADD', WAITERS, 'NX', math.floor(fewest) + (interactive > 0 and 0 or 0.5), me)
local part = math.min(wanted, math.ceil(limit / redis.call('ZCARD', WAITERS)), ${MAX_PER_RUN})
if is_after_outage then part = math.min(part, share_left) end

-- A slot is a token that can be granted: first the free tokens, then the others in the order in which they come back. A process
-- leaves one slot to each waiting process before it.
local out = redis.call('ZRANGE', TOKENS, 0, -1, 'WITHSCORES')
-- If the limit was lowered, more tokens may be out than it allows. Then the count of free tokens is negative, and the first
-- tokens that come back are not granted again.
local free = limit - #out / 2
local again = 0
local function slot_after(given)
  local number = redis.call('ZRANK', WAITERS, me) + given - again + (given < interactive and 0 or reserve)
  local index = 2 * (number % limit + 1 - free)
  local back_at = index > 0 and tonumber(out[index]) or now
  -- Until its response is reported, a token is stored with the latest time of its return. Plan as if the response came at once.
  if back_at - now > ${RETURN_MS} then back_at = back_at - ${SEND_WITHIN_MS + MAX_RETURN_MS - RETURN_MS} end
  return math.max(back_at + math.floor(number / limit) * ${RETURN_MS}, now + pause_left), out[index - 1]
end
local starts = {}
while #starts < part do
  local name = me .. ':' .. first + #starts
  local back_at = redis.call('ZSCORE', TOKENS, name)
  local start, token
  if back_at then
    -- The Redis client lost the first reply and sent this command again. Grant the token of the first run again: no request has
    -- used it, and Redis still counts it.
    start = math.max(back_at - ${SEND_WITHIN_MS + MAX_RETURN_MS}, now + pause_left)
    again = again + 1
  else
    start, token = slot_after(#starts)
  end
  if start > now + ${HORIZON_MS} then break end
  if token then redis.call('ZREM', TOKENS, token) end
  redis.call('ZADD', TOKENS, start + ${SEND_WITHIN_MS + MAX_RETURN_MS}, name)
  starts[#starts + 1] = start - now
end

-- Compute when the process asks again.
local ask_in = 0
if #starts < wanted then
  redis.call('ZINCRBY', WAITERS, #starts, me)
  local soonest = is_after_outage and ${MIN_ASK_AFTER_OUTAGE_MS} or ${MIN_ASK_MS}
  ask_in = math.max(soonest, slot_after(#starts) - ${ASK_AHEAD_MS} - now)
  redis.call('ZADD', DEADLINES, now + ask_in + ${MAX_LATE_MS}, me)
else
  redis.call('ZREM', WAITERS, me)
end
for _, key in ipairs({ TOKENS, WAITERS, DEADLINES }) do redis.call('PEXPIRE', key, ${KEEP_MS}) end
return { limit, math.max(0, limit - redis.call('ZCARD', TOKENS)), pause_left, ask_in, unpack(starts) }
`);

/** The numbers of a command that reports nothing and asks for no token: `limit` and `max_limit` are 1, the others 0. */
export const PROBE = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/** Names the Redis keys of one bucket. A cluster places a key by the text in braces, so all these keys share a slot. */
export function formatKeys(keyPrefix: string, bucket: BucketId): string[] {
  const hash = createHash('sha256').update(formatBucketKey(bucket)).digest('hex');
  const tag = `${bucket.endpoint.replace(/[{}]/g, '')}:${hash.slice(0, 32)}`;
  const names = ['tokens', 'waiters', 'deadlines', 'pause', 'limit', 'outage'];
  // The number separates versions of the package that store different data.
  return names.map((name) => `${keyPrefix}{${tag}}:3:${name}`);
}

export function parseReply(reply: unknown) {
  const numbers = Array.isArray(reply) ? reply.map(toNumber) : [];
  const [limit = Number.NaN, free = 0, pauseLeftMs = 0, askInMs = 0, ...starts] = numbers;
  if (numbers.length < 4 || numbers.some(Number.isNaN)) {
    throw new TypeError(`Redis sent an unexpected reply: expected at least 4 numbers, got ${kindOf(reply)}`);
  }
  return { limit, free, pauseLeftMs, askInMs, starts };
}

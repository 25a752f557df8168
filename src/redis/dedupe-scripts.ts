import { redisScript } from './redis-client.ts';

/*
 * One hash a key: `s` is the state (`L` leased, `F` failed, `D` done), `t` the token that holds the lease, `u` the end of the
 * lease in milliseconds of the Redis clock, `n` the number of attempts. Each script touches one key, so it runs anywhere in a
 * cluster, and reads the time from Redis, so the clocks of the receivers do not matter.
 */

/** KEYS: key. ARGV: token, lease in ms, ms after which an unfinished key is forgotten. */
export const CLAIM_SCRIPT = redisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('HMGET', KEYS[1], 's', 't', 'u', 'n')
local state, token, leased_until, attempts = found[1], found[2], tonumber(found[3]), tonumber(found[4]) or 0
if state == 'D' then return {'done', 0} end
local renewed = state == 'L' and token == ARGV[1]
if state == 'L' and not renewed and leased_until > now then return {'busy', leased_until - now} end
if not renewed then attempts = attempts + 1 end
redis.call('HSET', KEYS[1], 's', 'L', 't', ARGV[1], 'u', now + tonumber(ARGV[2]), 'n', attempts)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'acquired', attempts}
`);

/** KEYS: key. ARGV: ms to remember it. */
export const COMMIT_SCRIPT = redisScript(`
redis.call('HSET', KEYS[1], 's', 'D')
redis.call('HDEL', KEYS[1], 't', 'u', 'n')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`);

/** KEYS: key. ARGV: token. */
export const RELEASE_SCRIPT = redisScript(`
local found = redis.call('HMGET', KEYS[1], 's', 't')
if found[1] ~= 'L' or found[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 's', 'F')
redis.call('HDEL', KEYS[1], 't', 'u')
return 1
`);

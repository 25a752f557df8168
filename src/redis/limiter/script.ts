import { LARGEST_ANNOUNCED_LIMIT } from '../../limiter/announced-limit.ts';
import { RESERVE_FROM_LIMIT } from '../../limiter/bucket.ts';
import { CUT_FACTOR, HOLD_MS, RECOVERY_PER_SECOND, SMALLEST_SHARE } from '../../limiter/pace.ts';
import { LONGEST_PAUSE_MS } from '../../limiter/pause.ts';
import { WINDOW_MS } from '../../limiter/token-pool.ts';
import { LONGEST_INTERACTIVE_RUN } from '../../limiter/wait-queue.ts';
import { redisScript } from '../redis-client.ts';
import {
  DIVIDED_MS,
  FORGET_AFTER_MS,
  HORIZON_MS,
  LATE_MS,
  LEAD_MS,
  RETURN_MS,
  SEND_WITHIN_MS,
  SHORTEST_ASK_MS,
} from './timing.ts';

/** Redis serves nobody else meanwhile, so no limit and no queue makes one exchange look at more coming grants than this. */
const MOST_TURNS = 1_000;

/** As far as a process of a small limit can be behind the others. */
const FEWEST_TURNS = 200;

/*
 * One exchange between a process and a bucket: the process tells what became of its leases and what it wants, and is told
 * which tokens it gets and when to ask again. All times are of the clock of Redis.
 *
 * `leases` is a sorted set: a member a token that is out, scored by when it comes back. A member that begins with `s:` has
 * been answered, so its score is exact; the score of any other is the latest moment, for a process that may have died.
 * `waiting` is a hash: a field a process, with its virtual time, when it loses its turn, and how many calls wait there.
 * `state` is a hash: what holds for the endpoint as a whole.
 *
 * Turns are start-time fair: every grant moves the virtual time of its process on by one, and the next token belongs to the
 * waiting process whose virtual time is smallest. The script plays the coming grants through to find the turn of the
 * process that asks, so nobody has to poll.
 */
const LEASES = `
for index = 15, #ARGV, 3 do
  local id = me .. ':' .. ARGV[index + 1]
  local back_at = now + tonumber(ARGV[index + 2])
  local score = tonumber(redis.call('ZSCORE', KEYS[1], id) or nil)
  if ARGV[index] == 'back' then
    if score then
      redis.call('ZREM', KEYS[1], id)
      redis.call('ZADD', KEYS[1], math.min(score, back_at), 's:' .. id)
    end
  elseif not redis.call('ZSCORE', KEYS[1], 's:' .. id) and (not score or score < back_at) then
    redis.call('ZADD', KEYS[1], back_at, id)
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
`;

const STATE = `
local found = redis.call('HMGET', KEYS[3], 'announced', 'announced_for', 'paused_until', 'cut_share', 'cut_at',
  'last_grant_at', 'divided_until', 'virtual', 'run')
local announced, announced_for = tonumber(found[1] or nil), tonumber(found[2] or 0)
-- The clock of Redis may have been set back since.
local paused_until = math.min(tonumber(found[3] or 0), now + ${LONGEST_PAUSE_MS})
local cut_share, cut_at = tonumber(found[4] or 1), tonumber(found[5] or 0)
local last_grant_at, divided_until = tonumber(found[6] or 0), tonumber(found[7] or 0)
local virtual, run = tonumber(found[8] or 0), tonumber(found[9] or 0)

-- A process with a larger configured limit believes in more.
local believable = math.max(${LARGEST_ANNOUNCED_LIMIT}, tonumber(ARGV[2]))
if announced and announced > believable then announced = nil end
local announced_sent_at = now - tonumber(ARGV[14])
if tonumber(ARGV[13]) > 0 and announced_sent_at >= announced_for then
  announced, announced_for = tonumber(ARGV[13]), announced_sent_at
end
local limit = announced or tonumber(ARGV[2])
if tonumber(ARGV[3]) > 0 then limit = math.min(limit, tonumber(ARGV[3])) end

local recovering_ms = math.max(0, now - cut_at - ${HOLD_MS})
local share = math.min(1, cut_share + recovering_ms / 1000 * ${RECOVERY_PER_SECOND})
if tonumber(ARGV[11]) >= 0 then
  paused_until = math.max(paused_until, now + tonumber(ARGV[11]))
  if now - tonumber(ARGV[12]) > cut_at then
    share = math.max(${SMALLEST_SHARE}, share * ${CUT_FACTOR})
    cut_share, cut_at = share, now
  end
end
local spacing = share < 1 and ${WINDOW_MS} / (limit * share) or 0
if ARGV[9] == '1' then divided_until = now + ${DIVIDED_MS} end
`;

const CONTENDERS = `
local mine = { virtual = virtual, interactive = tonumber(ARGV[4]), background = tonumber(ARGV[5]) }
local contenders = { mine }
local registered = redis.call('HGETALL', KEYS[2])
for index = 1, #registered, 2 do
  local tag, loses_turn_at, interactive, background = string.match(registered[index + 1], '(%S+) (%S+) (%S+) (%S+)')
  tag = tonumber(tag)
  local is_waiting = tonumber(loses_turn_at) > now
  if registered[index] == me then
    -- Who kept waiting keeps the turn; anybody else begins where the others are.
    mine.virtual = is_waiting and tag or math.max(virtual, tag)
  elseif is_waiting then
    contenders[#contenders + 1] =
      { virtual = tag, interactive = tonumber(interactive), background = tonumber(background) }
  elseif tag <= virtual then
    redis.call('HDEL', KEYS[2], registered[index])
  end
end

local others_virtual = math.huge
for index = 2, #contenders do others_virtual = math.min(others_virtual, contenders[index].virtual) end

local function foremost(lane)
  local first
  for _, each in ipairs(contenders) do
    if each[lane] > 0 and (not first or each.virtual < first.virtual) then first = each end
  end
  return first
end
`;

const SLOTS = `
local reserve = tonumber(ARGV[6])
if reserve < 0 then reserve = limit >= ${RESERVE_FROM_LIMIT} and 1 or 0 end
reserve = math.min(reserve, limit - 1, ${MOST_TURNS})

local wished = 0
for _, each in ipairs(contenders) do wished = wished + each.interactive + each.background end
-- Each turn fulfils one wish or keeps one slot for the reserve, so the slots behind these are never looked at.
local most_slots = math.min(wished, ${MOST_TURNS}) + reserve

local function slots_of(only_mine, size)
  local out = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
  local slots, taken = {}, {}
  for index = 1, #out, 2 do
    local member, free_at = out[index], tonumber(out[index + 1])
    local is_settled = string.sub(member, 1, 2) == 's:'
    local owned = string.sub(member, is_settled and 3 or 1, (is_settled and 2 or 0) + #me + 1) == me .. ':'
    if owned or not only_mine then
      local due = free_at
      local earliest = free_at - max_uplink - ${SEND_WITHIN_MS}
      if not is_settled and earliest - ${LEAD_MS} > now then due = earliest end
      taken[#taken + 1] = { free_at = free_at, due = due, member = member }
    end
  end
  for _ = 1, math.min(size - #taken, most_slots) do slots[#slots + 1] = { free_at = now, due = now } end
  local usable = {}
  for index = math.max(0, #taken - size) + 1, #taken do usable[#usable + 1] = taken[index] end
  table.sort(usable, function(one, other) return one.due < other.due end)
  for index = 1, math.min(#usable, most_slots - #slots) do slots[#slots + 1] = usable[index] end
  return slots
end
`;

const GRANTS = `
local is_asking = mine.interactive + mine.background > 0
local slots = is_asking and slots_of(false, limit)
local is_divided = divided_until > now
local own_slots = is_asking and is_divided and slots_of(true, math.min(limit, tonumber(ARGV[8])))
local turns = is_asking and math.min(math.max(${FEWEST_TURNS}, 2 * limit), ${MOST_TURNS}) + reserve or 0

local granted, wake_at = {}, nil
local free_again_at, kept, coming_run = last_grant_at, 0, run
for turn = 0, turns - 1 do
  local slot, cycle = slots[turn % #slots + 1], math.floor(turn / #slots)
  if turn % #slots == 0 then kept = 0 end
  local interactive, background = foremost('interactive'), foremost('background')
  local is_forced = background and coming_run >= ${LONGEST_INTERACTIVE_RUN}
  local lane = (is_forced or not interactive) and 'background' or 'interactive'
  local next_one = lane == 'background' and background or interactive
  if mine.interactive + mine.background == 0 then break end
  if lane == 'background' and not is_forced and kept < reserve then
    kept = kept + 1
  else
    local opens_at = math.max(now, paused_until)
    if spacing > 0 then opens_at = math.max(opens_at, free_again_at + spacing) end
    local due = math.max(opens_at, slot.due + cycle * ${RETURN_MS})
    if next_one == mine then
      local own = own_slots and own_slots[#granted + 1]
      local starts_at = math.max(opens_at, slot.free_at, own and own.free_at or 0)
      if own_slots and not own then
        wake_at = now + ${WINDOW_MS}
      elseif cycle > 0 or starts_at > now + ${HORIZON_MS} then
        wake_at = math.max(due, own and own.due or 0) - ${LEAD_MS}
      end
      if wake_at then break end
      granted[#granted + 1] = { starts_at = starts_at, lane = lane, member = slot.member }
      due, last_grant_at = starts_at, math.max(last_grant_at, starts_at)
      virtual = math.max(virtual, math.min(mine.virtual, others_virtual))
      run = (lane == 'interactive' and background) and run + 1 or 0
    end
    free_again_at = due
    next_one[lane] = next_one[lane] - 1
    next_one.virtual = next_one.virtual + 1
    coming_run = (lane == 'interactive' and background) and coming_run + 1 or 0
  end
end
local wants_more = mine.interactive + mine.background > 0
-- Who got all that one exchange may give has the rest at once.
if wants_more and not wake_at then wake_at = #granted > 0 and now or now + ${WINDOW_MS} end
`;

const ANSWER = `
local grants = {}
for index, grant in ipairs(granted) do
  if grant.member then redis.call('ZREM', KEYS[1], grant.member) end
  local back_at = grant.starts_at + ${SEND_WITHIN_MS} + max_uplink + ${RETURN_MS}
  redis.call('ZADD', KEYS[1], back_at, me .. ':' .. (tonumber(ARGV[7]) + index - 1))
  grants[#grants + 1] = math.ceil(grant.starts_at - now)
  grants[#grants + 1] = grant.lane == 'interactive' and 1 or 0
end
local wake_in = wants_more and math.ceil(math.max(${SHORTEST_ASK_MS}, wake_at - now)) or -1
local loses_turn_at = wants_more and now + wake_in + ${LATE_MS} or 0
if wants_more or mine.virtual > virtual then
  redis.call('HSET', KEYS[2], me,
    table.concat({ mine.virtual, loses_turn_at, mine.interactive, mine.background }, ' '))
else
  redis.call('HDEL', KEYS[2], me)
end
if announced then redis.call('HSET', KEYS[3], 'announced', announced, 'announced_for', announced_for) end
redis.call('HSET', KEYS[3], 'paused_until', paused_until, 'cut_share', cut_share, 'cut_at', cut_at,
  'last_grant_at', last_grant_at, 'divided_until', divided_until, 'virtual', virtual, 'run', run)
local forget_ms = ${FORGET_AFTER_MS} + math.max(0, paused_until - now)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, forget_ms) end
local free = limit - redis.call('ZCARD', KEYS[1])
return { limit, announced or 0, math.max(0, free), math.ceil(math.max(0, paused_until - now)), wake_in, grants }
`;

/**
 * KEYS: leases, waiting, state, all of one hash slot. ARGV: process; configured limit; highest limit or 0; interactive
 * calls that wait; background calls that wait; reserve or -1; number of the first new lease; share of the limit after an
 * outage; 1 when back from an outage; longest uplink in ms; pause in ms or -1; ms since the refused request was sent;
 * announced limit or 0; ms since that request was sent; then for each lease with news: `back` or `hold`, number, ms until
 * its token comes back.
 */
export const EXCHANGE_SCRIPT = redisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local me, max_uplink = ARGV[1], tonumber(ARGV[10])
${LEASES}${STATE}${CONTENDERS}${SLOTS}${GRANTS}${ANSWER}`);

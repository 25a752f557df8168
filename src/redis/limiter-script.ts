import {
  CUT_FACTOR,
  HOLD_MS,
  LARGEST_ANNOUNCED_LIMIT,
  LONGEST_INTERACTIVE_RUN,
  MAX_PAUSE_MS,
  RECOVERY_PER_SECOND,
  RESERVE_FROM_LIMIT,
  RETURN_MS,
  SMALLEST_SHARE,
  WINDOW_MS,
} from './old-allowance.ts';
import { redisScript } from './redis-client.ts';

/** Tokens are given out this long before they come back, so that asking Redis costs no time of theirs. */
export const HORIZON_MS = 200;

/** From the start of a lease to the sending of its request; whoever needs longer tells Redis. */
export const SEND_WITHIN_MS = 100;

/** How long before a token comes back its next holder should ask for it. */
const LEAD_MS = 50;

/** A process that did not ask this long after its turn has lost the turn; it may be dead. */
const LATE_MS = 150;

/** After an outage every process keeps to its share this long, until the slowest client has reconnected. */
const DIVIDED_MS = 3_000;

/** How soon a process asks again that uses up its share meanwhile. */
const DIVIDED_POLL_MS = 100;

/** A process whose turn is very near is not asked to come back sooner than this. */
const SHORTEST_ASK_MS = 10;

/** How long the state of a bucket that nobody uses is kept. */
const FORGET_AFTER_MS = 60 * 60 * 1_000;

/** Redis serves nobody else meanwhile, so no limit and no queue makes one sync look at more coming grants than this. */
const MOST_TURNS = 1_000;

/** As far as a process of a small limit can be behind the others. */
const FEWEST_TURNS = 200;

/**
 * One sync of a process with a bucket: the process says what became of its tokens and how many it wants, and learns which
 * it gets and when to ask again. `ARGV[1]` is a `SyncRequest` in JSON, the reply a `SyncResponse`; without `ARGV` the
 * script does nothing. All times are of the clock of Redis.
 *
 * - `leases`, a sorted set: a member a token that is out, scored by when it comes back. `exact:` begins one that was
 *   answered; the score of a `latest:` one is the latest moment, for a process that may have died.
 * - `waiting`, a hash: a field a process, with its virtual time, when it loses its turn, and how many calls wait there.
 * - `state`, a hash: what holds for the endpoint as a whole.
 *
 * Turns are start-time fair: every grant moves the virtual time of its process on by one, and the next token belongs to the
 * waiting process whose virtual time is smallest. The script plays the coming grants through to find the turn of the
 * process that asks, so nobody has to poll.
 */
export const SYNC_SCRIPT = redisScript(`
if #ARGV == 0 then return '' end
local LEASES, WAITING, STATE = KEYS[1], KEYS[2], KEYS[3]
local request = cjson.decode(ARGV[1])
local me = request.process
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- What is known, on the clock of now: one that was set back, or another server's, would hold all up until it is there again.

local state = { announced_for = 0, paused_until = 0, cut_share = 1, cut_at = 0, last_grant_at = 0, divided_until = 0,
  virtual = 0, run = 0, seen_at = 0 }
local fields = redis.call('HGETALL', STATE)
for index = 1, #fields, 2 do state[fields[index]] = tonumber(fields[index + 1]) end
local set_back = math.max(0, state.seen_at - now)
state.seen_at = now
if set_back > 0 then
  for _, name in ipairs({ 'announced_for', 'paused_until', 'cut_at', 'last_grant_at', 'divided_until' }) do
    state[name] = state[name] - set_back
  end
  for _, member in ipairs(redis.call('ZRANGE', LEASES, 0, -1)) do
    redis.call('ZINCRBY', LEASES, -set_back, member)
  end
end

-- The tokens of this process.

local function is_exact(member) return string.sub(member, 1, 6) == 'exact:' end
local function is_mine(member)
  local start = is_exact(member) and 7 or 8
  return string.sub(member, start, start + #me) == me .. ':'
end
if request.recovers then
  -- What was granted in a reply that never arrived is out no longer.
  for _, member in ipairs(redis.call('ZRANGE', LEASES, 0, -1)) do
    if is_mine(member) then redis.call('ZREM', LEASES, member) end
  end
end
for _, lease in ipairs(request.leases) do
  local id = me .. ':' .. lease.number
  redis.call('ZREM', LEASES, 'exact:' .. id, 'latest:' .. id)
  redis.call('ZADD', LEASES, now + lease.backInMs, (lease.isExact and 'exact:' or 'latest:') .. id)
end
redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', now)

-- What holds for the endpoint.

-- A process with a larger configured limit believes in more.
local plausible = math.max(${LARGEST_ANNOUNCED_LIMIT}, request.limit)
if state.announced and state.announced > plausible then state.announced = nil end
local announcement = request.announcement
if announcement and now - announcement.sentMsAgo >= state.announced_for then
  state.announced, state.announced_for = announcement.limit, now - announcement.sentMsAgo
end
local limit = math.min(state.announced or request.limit, request.maxLimit or math.huge)

state.paused_until = math.min(state.paused_until, now + ${MAX_PAUSE_MS})
local recovering_ms = math.max(0, now - state.cut_at - ${HOLD_MS})
local share = math.min(1, state.cut_share + recovering_ms / 1000 * ${RECOVERY_PER_SECOND})
local refusal = request.refusal
if refusal then
  state.paused_until = math.max(state.paused_until, now + refusal.pauseMs)
  if now - refusal.sentMsAgo > state.cut_at then
    share = math.max(${SMALLEST_SHARE}, share * ${CUT_FACTOR})
    state.cut_share, state.cut_at = share, now
  end
end
local spacing = share < 1 and ${WINDOW_MS} / (limit * share) or 0
local opens_at = math.max(now, state.paused_until)
if request.recovers then state.divided_until = now + ${DIVIDED_MS} end

-- Who waits.

local mine = { virtual = state.virtual, interactive = request.interactive, background = request.background }
local contenders = { mine }
local others_virtual = math.huge
local entries = redis.call('HGETALL', WAITING)
for index = 1, #entries, 2 do
  local entry = cjson.decode(entries[index + 1])
  -- Who is still there asks again in time.
  if set_back > 0 then entry.loses_turn_at = 0 end
  local is_waiting = entry.loses_turn_at > now
  if entries[index] == me then
    -- Who kept waiting keeps the turn; anybody else begins where the others are.
    mine.virtual = is_waiting and entry.virtual or math.max(state.virtual, entry.virtual)
  elseif is_waiting then
    contenders[#contenders + 1] = entry
    others_virtual = math.min(others_virtual, entry.virtual)
  elseif entry.virtual <= state.virtual then
    redis.call('HDEL', WAITING, entries[index])
  end
end
local function foremost(lane)
  local first
  for _, each in ipairs(contenders) do
    if each[lane] > 0 and (not first or each.virtual < first.virtual) then first = each end
  end
  return first
end
local function wants_more() return mine.interactive + mine.background > 0 end

-- Which tokens come back when: \`free_at\` for sure, and \`due\` if the answers come as soon as they can.

local reserve = request.reserve or (limit >= ${RESERVE_FROM_LIMIT} and 1 or 0)
reserve = math.min(reserve, limit - 1, ${MOST_TURNS})
local demand = 0
for _, each in ipairs(contenders) do demand = demand + each.interactive + each.background end
-- Each turn serves one call or keeps one token for the reserve, so the tokens behind these are never looked at.
local most_slots = math.min(demand, ${MOST_TURNS}) + reserve
local slots, own_count = {}, 0
if wants_more() then
  local out = redis.call('ZRANGE', LEASES, 0, -1, 'WITHSCORES')
  for _ = 1, math.min(limit - #out / 2, most_slots) do slots[#slots + 1] = { free_at = now, due = now } end
  local taken = {}
  for index = 1, #out, 2 do
    local member, free_at = out[index], tonumber(out[index + 1])
    local due = free_at - request.maxUplinkMs - ${SEND_WITHIN_MS}
    if is_exact(member) or due - ${LEAD_MS} <= now then due = free_at end
    if is_mine(member) then own_count = own_count + 1 end
    -- After a cut of the limit more tokens are out than there are: the first to come back do not count.
    if (index + 1) / 2 > #out / 2 - limit then
      taken[#taken + 1] = { free_at = free_at, due = due, member = member }
    end
  end
  table.sort(taken, function(one, other) return one.due < other.due end)
  for index = 1, math.min(#taken, most_slots - #slots) do slots[#slots + 1] = taken[index] end
end

-- The coming grants, until it is clear when this process asks again.

local granted, wake_at = {}, nil
local own_left = state.divided_until > now and math.min(limit, request.share) - own_count or math.huge
local previous_at, kept, run = state.last_grant_at, 0, state.run
local most_turns = math.min(math.max(${FEWEST_TURNS}, 2 * limit), ${MOST_TURNS}) + reserve
for turn = 0, most_turns - 1 do
  if not wants_more() then break end
  local slot, cycle = slots[turn % #slots + 1], math.floor(turn / #slots)
  if turn % #slots == 0 then kept = 0 end
  local interactive, background = foremost('interactive'), foremost('background')
  local is_forced = background and run >= ${LONGEST_INTERACTIVE_RUN}
  local lane = (is_forced or not interactive) and 'background' or 'interactive'
  if lane == 'background' and not is_forced and kept < reserve then
    kept = kept + 1
  else
    local next_one = lane == 'background' and background or interactive
    local spaced_until = spacing > 0 and previous_at + spacing or 0
    local due = math.max(opens_at, spaced_until, slot.due + cycle * ${RETURN_MS})
    run = lane == 'interactive' and background and run + 1 or 0
    if next_one == mine then
      local starts_at = math.max(opens_at, spaced_until, slot.free_at)
      if own_left <= #granted then
        wake_at = now + ${DIVIDED_POLL_MS}
      elseif cycle > 0 or starts_at > now + ${HORIZON_MS} then
        wake_at = due - ${LEAD_MS}
      end
      if wake_at then break end
      granted[#granted + 1] = starts_at
      if slot.member then redis.call('ZREM', LEASES, slot.member) end
      local back_at = starts_at + ${SEND_WITHIN_MS} + request.maxUplinkMs + ${RETURN_MS}
      redis.call('ZADD', LEASES, back_at, 'latest:' .. me .. ':' .. (request.firstNumber + #granted - 1))
      due, state.last_grant_at = starts_at, math.max(state.last_grant_at, starts_at)
      state.virtual = math.max(state.virtual, math.min(mine.virtual, others_virtual))
      state.run = run
    end
    previous_at = due
    next_one[lane] = next_one[lane] - 1
    next_one.virtual = next_one.virtual + 1
  end
end

local response = { limit = limit, announced = state.announced, starts = granted,
  free = math.max(0, limit - redis.call('ZCARD', LEASES)), pausedForMs = math.ceil(opens_at - now) }
for index, starts_at in ipairs(granted) do granted[index] = math.ceil(starts_at - now) end
-- An empty table would be an object in JSON.
if #granted == 0 then response.starts = nil end
if wants_more() then
  -- Who got all that one sync may give has the rest at once.
  if not wake_at then wake_at = #granted > 0 and now or now + ${WINDOW_MS} end
  response.askInMs = math.ceil(math.max(${SHORTEST_ASK_MS}, wake_at - now))
end
if wants_more() or mine.virtual > state.virtual then
  mine.loses_turn_at = response.askInMs and now + response.askInMs + ${LATE_MS} or 0
  redis.call('HSET', WAITING, me, cjson.encode(mine))
else
  redis.call('HDEL', WAITING, me)
end
local flat = {}
for name, value in pairs(state) do
  flat[#flat + 1] = name
  flat[#flat + 1] = value
end
redis.call('HSET', STATE, unpack(flat))
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ${FORGET_AFTER_MS} + opens_at - now) end
return cjson.encode(response)
`);

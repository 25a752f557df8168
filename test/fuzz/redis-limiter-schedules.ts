import fc from 'fast-check';
import type { Permit } from '../../src/limiter/limiter.ts';
import { RedisLimiter } from '../../src/redis/index.ts';
import type { NodeRedisClient } from '../../src/redis/redis-client.ts';
import { bucketOf } from '../limiter/make-limiter.ts';
import type { Made } from '../support/made.ts';
import { RedisEmulator } from '../support/redis-emulator.ts';
import { must } from './harness.ts';
import { type Counted, findOwnRefusal } from './limiter-schedules.ts';
import { pause, scheduleProperty } from './virtual-time.ts';

/** Longer than any schedule takes. */
const LIMIT_MS = 600_000;

/** The delay that a 429 asks for. */
const REFUSED_FOR_MS = 700;
/** The longest time of a command when nothing is slow, and the longest time until other processes know of a pause. */
const CALM_COMMAND_MS = 20;
const TOLD_WITHIN_MS = 6 * CALM_COMMAND_MS;
/** A token comes back a second after its response. Then a process asks for it, and some have to ask again. */
const CYCLE_MS = 1_200;

/** A part of the longest time of the schedule. */
const part = fc.double({ min: 0, max: 1, noNaN: true });

/** What happens to one command: how long it and its reply are under way, and whether it runs twice. */
const fate = fc.record({
  request: part,
  reply: part,
  /** If this is less than the `lostShare` of the schedule, the reply is lost, and the client sends the command again. */
  loss: part,
  again: part,
});

/** One call: when it is made, is sent, is counted by the service, and gets its response, and how it ends. */
const plan = fc.record({
  process: fc.nat(3),
  priority: fc.constantFrom<('interactive' | 'background')[]>('interactive', 'interactive', 'background'),
  arrives: part,
  send: part,
  uplink: part,
  respond: part,
  end: fc.constantFrom('success', 'success', 'success', 'success', 'refused', 'cancelled'),
});

/**
 * The longest times belong to the whole schedule, because many faults show only if nothing else is slow. The commands after `fates`
 * arrive at once.
 */
const schedule = fc.record({
  limit: fc.constantFrom<(1 | 3 | 10)[]>(1, 3, 10, 10),
  processes: fc.integer({ min: 1, max: 4 }),
  maxCommandMs: fc.constantFrom(0, 20, 500),
  lostShare: fc.constantFrom(0, 0.25, 0.6),
  /** Redis refuses all commands from this time on, for so long. */
  outageAtMs: fc.nat(1_000),
  outageMs: fc.constantFrom(0, 0, 1_700, 3_000),
  maxAgainMs: fc.constantFrom(60, 400, 3_000),
  maxArrivalMs: fc.constantFrom(0, 2_000),
  maxSendMs: fc.constantFrom(0, 0, 1_500),
  maxUplinkMs: fc.constantFrom(0, 80, 500),
  maxRespondMs: fc.constantFrom(20, 20, 3_000),
  /** True if the service refuses some requests, although they are within the limit. */
  refuses: fc.boolean(),
  fates: fc.array(fate, { maxLength: 200, size: 'max' }),
  plans: fc.array(plan, { minLength: 1, maxLength: 100, size: 'max' }),
});
type Schedule = Made<typeof schedule>;

/** True if nothing fails and nothing is slow. */
function isCalm({ lostShare, maxCommandMs, outageMs, maxSendMs, maxRespondMs }: Schedule): boolean {
  const isFast = maxCommandMs <= CALM_COMMAND_MS && maxSendMs === 0 && maxRespondMs === 20;
  return lostShare === 0 && outageMs === 0 && isFast;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Plays a schedule on an emulator of Redis that runs the script of the limiter; rejects if a request would get a 429. If nothing
 * fails or is slow, it also rejects if a process sends a request in a pause of another one, or if the calls take too long.
 *
 * Processes use their shares while Redis is away. But if one process can lose Redis alone, it rejects calls instead, and they are
 * made again: the other processes would not leave it a share.
 */
async function play(input: Schedule): Promise<void> {
  const { limit, processes } = input;
  const redis = openRedis(input);
  const losesOnlyTogether = input.lostShare === 0 && input.maxCommandMs <= 20 && processes <= limit;
  const onUnavailable = processes === 1 || losesOnlyTogether ? 'local' : 'reject';
  const limiters = Array.from(
    { length: processes },
    () => new RedisLimiter({ redis, processes, onUnavailable, logger: silent }),
  );
  const acquire = async ({ process, priority }: Schedule['plans'][number]): Promise<Permit> => {
    for (;;) {
      const call = limiters[process % processes]?.acquire({ bucket: bucketOf(limit), priority });
      const permit = await call?.catch(() => undefined);
      if (permit !== undefined) return permit;
      await pause(100);
    }
  };
  const counted: Counted[] = [];
  const grants: number[] = [];
  const pauses: number[] = [];
  const run = async (call: Schedule['plans'][number]): Promise<void> => {
    await pause(call.arrives * input.maxArrivalMs);
    const permit = await acquire(call);
    if (call.end === 'cancelled') return permit.cancel();
    grants.push(performance.now());
    if (input.maxSendMs > 0) await pause(call.send * input.maxSendMs);
    permit.send();
    await pause(call.uplink * input.maxUplinkMs);
    counted.push({ order: counted.length, knownLimit: limit, countedAt: performance.now() });
    await pause(call.respond * input.maxRespondMs);
    const isRefused = input.refuses && call.end === 'refused';
    if (isRefused) pauses.push(performance.now());
    permit.noteResponse(isRefused ? { status: 429, retryAfterMs: REFUSED_FOR_MS } : { status: 200 });
  };
  // At a limit of 1, a hundred calls would take too long.
  const calls = input.plans.slice(0, 20 * limit);
  await Promise.all(calls.map(run));
  const refusal = findOwnRefusal(counted);
  must(refusal === undefined, () => `an own 429: ${refusal}`);
  if (!isCalm(input)) return;
  const tookMs = performance.now();
  for (const from of pauses) {
    const early = grants.find((at) => at > from + TOLD_WITHIN_MS && at < from + REFUSED_FOR_MS);
    must(early === undefined, () => `a grant at ${early} ms in the pause from ${from} ms on`);
  }
  // One token is kept for interactive calls.
  const cycles = 1 + Math.ceil(grants.length / Math.max(1, limit - 1));
  const mayTakeMs =
    input.maxArrivalMs + cycles * (CYCLE_MS + input.maxUplinkMs) + pauses.length * REFUSED_FOR_MS;
  must(tookMs <= mayTakeMs, () => `${grants.length} calls took ${tookMs} ms instead of ${mayTakeMs}`);
}

/** A client for all processes, whose commands have the fates of the schedule. */
function openRedis({
  fates,
  lostShare,
  maxCommandMs,
  maxAgainMs,
  outageAtMs,
  outageMs,
}: Schedule): NodeRedisClient {
  const emulator = new RedisEmulator();
  const left = fates.values();
  return {
    evalSha: () => emulator.evalSha(),
    eval: async (source, { keys, arguments: values }) => {
      const outageForMs = performance.now() - outageAtMs;
      if (outageForMs >= 0 && outageForMs < outageMs) throw new Error('connect ECONNREFUSED');
      const { value: next } = left.next();
      if (next === undefined) return emulator.run(source, keys, values);
      if (maxCommandMs > 0) await pause(next.request * maxCommandMs);
      let reply = emulator.run(source, keys, values);
      if (next.loss < lostShare) {
        await pause(next.again * maxAgainMs);
        reply = emulator.run(source, keys, values);
      }
      if (maxCommandMs > 0) await pause(next.reply * maxCommandMs);
      return reply;
    },
  };
}

/**
 * Slow commands, lost replies, commands that run twice, and outages cause no 429, no request in a pause, and no call that waits too
 * long.
 */
export const redisLimiterSchedules = scheduleProperty('redis-limiter', 40, schedule, play, {
  limitMs: LIMIT_MS,
});

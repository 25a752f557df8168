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

/** One call: when it is made, is sent, is counted by the service, and gets its response. */
const plan = fc.record({
  process: fc.nat(3),
  priority: fc.constantFrom<('interactive' | 'background')[]>('interactive', 'interactive', 'background'),
  arrives: part,
  send: part,
  uplink: part,
  respond: part,
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
  fates: fc.array(fate, { maxLength: 200, size: 'max' }),
  plans: fc.array(plan, { minLength: 1, maxLength: 100, size: 'max' }),
});
type Schedule = Made<typeof schedule>;

const silent = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Plays a schedule on an emulator of Redis that runs the script of the limiter; rejects if a request would get a 429. Processes use
 * their shares while Redis is away. But if one process can lose Redis alone, it rejects calls instead, and they are made again: the
 * other processes would not leave it a share.
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
  const run = async (call: Schedule['plans'][number]): Promise<void> => {
    await pause(call.arrives * input.maxArrivalMs);
    const permit = await acquire(call);
    if (input.maxSendMs > 0) await pause(call.send * input.maxSendMs);
    permit.send();
    await pause(call.uplink * input.maxUplinkMs);
    counted.push({ order: counted.length, knownLimit: limit, countedAt: performance.now() });
    await pause(call.respond * input.maxRespondMs);
    permit.noteResponse({ status: 200 });
  };
  // At a limit of 1, a hundred calls would take too long.
  await Promise.all(input.plans.slice(0, 20 * limit).map(run));
  const refusal = findOwnRefusal(counted);
  must(refusal === undefined, () => `an own 429: ${refusal}`);
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

/** Slow commands, lost replies, commands that run twice, and outages cause no 429, and no call that waits for ever. */
export const redisLimiterSchedules = scheduleProperty('redis-limiter', 40, schedule, play, {
  limitMs: LIMIT_MS,
});

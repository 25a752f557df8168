/** One process of a fleet; `fleet.ts` forks it. */
import { Redis } from 'ioredis';
import { contenders } from './contenders.ts';
import { shiftWallClock } from './shift-clock.ts';
import type { PeerMessage, PeerOutcome, PeerTask } from './task.ts';

function tell(message: PeerMessage): void {
  process.send?.(message);
}

async function run(task: PeerTask): Promise<PeerOutcome> {
  if (task.clockAheadMs !== 0) shiftWallClock(task.clockAheadMs);
  // As a user has it, except that a lost connection is not printed at every attempt.
  const redis = new Redis(task.redisUrl);
  redis.on('error', () => {});
  await redis.ping();
  // A service has run for a while when it is busy: its first request must not pay for loading `fetch`.
  await (await fetch(new URL('/log', task.baseUrl), { headers: { authorization: 'nobody' } })).arrayBuffer();
  let redisCommands = 0;
  const sendCommand = redis.sendCommand.bind(redis);
  redis.sendCommand = (...command) => {
    redisCommands += 1;
    return sendCommand(...command);
  };
  const fallbacks: string[] = [];
  const call = contenders[task.contender](task, redis, (state) => fallbacks.push(state));
  const startedAt = performance.now();
  const endedAt: number[] = [];
  const results = await Promise.allSettled(
    Array.from({ length: task.calls }, async () => {
      await call();
      endedAt.push(performance.now() - startedAt);
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const failed = results.filter(({ status }) => status === 'rejected').length;
  return { failed, seconds, endedAt, redisCommands, fallbacks };
}

process.once('message', async (message) => {
  // Sound: the parent sends nothing else.
  tell(await run(message as PeerTask));
});
// A service runs on when it has nothing to do; this one ends with its parent.
process.once('disconnect', () => process.exit(0));
tell('ready');

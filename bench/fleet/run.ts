import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { CountingMode } from '../limiter/counting.ts';
import type { EnforcingServer, EnforcingServerOptions } from '../limiter/enforcing-server.ts';
import { forkEnforcingServer, readLog } from '../limiter/server-process.ts';
import { PeerFleet } from './fleet.ts';
import { type OutageKind, OutageProxy } from './proxy.ts';
import { CONTENDER_NAMES, type ContenderName, type PeerOutcome } from './task.ts';

/** A fleet, a service, and what happens in the middle of the run. */
export interface FleetCase {
  readonly name: string;
  readonly mode: CountingMode;
  readonly processes: number;
  /** Calls of all processes together. */
  readonly calls: number;
  /** A request is counted up to this many milliseconds after it arrived. Default: 80. */
  readonly jitterMs?: number;
  readonly contenders?: readonly ContenderName[];
  /** The first process is killed so many seconds after the start. */
  readonly killAfterSeconds?: number;
  readonly outage?: { readonly kind: OutageKind; readonly afterSeconds: number; readonly seconds: number };
  /** Redis loses all keys of the fleet so many seconds after the start, as by FLUSHALL or by a restart in an outage. */
  readonly forgetAfterSeconds?: number;
  /** How far the first process's wall clock is ahead, in milliseconds. */
  readonly clockAheadMs?: number;
}

/** How a contender did in a case. */
export interface FleetRun {
  readonly contender: ContenderName;
  /** Answers of 429. */
  readonly refused: number;
  readonly seconds: number;
  /** Accepted requests per second, in percent of the limit. */
  readonly sharePercent: number;
  readonly lost: number;
  readonly commandsPerCall: number;
  /** Calls that the slowest process had made when the first process had made four fifths of its own. */
  readonly leastServed: number;
  /** Calls that the first process had made at that moment. */
  readonly firstServed: number;
  /** Accepted requests per second from 2 s after the kill on, in percent of the limit. */
  readonly sharePercentAfterKill?: number;
  /** The longest time in seconds without an accepted request. */
  readonly longestGapSeconds: number;
  readonly fallbacks: readonly string[];
}

export const LIMIT = 10;
const JITTER_MS = 80;
const USED_AFTER_KILL_MS = 2_000;

/**
 * Runs a case with one contender after the other: the processes of all would need more processors than there are.
 *
 * @param startServer - how the service is started; default: in a process of its own
 */
export async function runFleetCase(
  each: FleetCase,
  redisUrl: string,
  startServer: (options: EnforcingServerOptions) => Promise<EnforcingServer> = forkEnforcingServer,
): Promise<FleetRun[]> {
  const runs: FleetRun[] = [];
  for (const contender of each.contenders ?? CONTENDER_NAMES) {
    const server = await startServer({ mode: each.mode, limit: LIMIT, jitterMs: each.jitterMs ?? JITTER_MS });
    const proxy = await OutageProxy.open(redisUrl);
    const fleet = await PeerFleet.start(each.processes);
    try {
      const [baseUrl = ''] = server.baseUrls;
      runs.push(await runContender(each, { contender, baseUrl, fleet, proxy, redisUrl }));
    } finally {
      await fleet.stop();
      await proxy.close();
      await server.close();
    }
  }
  return runs;
}

/** One contender's processes, their way to Redis, and the service they use. */
interface Stage {
  readonly contender: ContenderName;
  readonly baseUrl: string;
  readonly fleet: PeerFleet;
  readonly proxy: OutageProxy;
  readonly redisUrl: string;
}

async function runContender(each: FleetCase, stage: Stage): Promise<FleetRun> {
  const { contender, baseUrl, fleet, proxy, redisUrl } = stage;
  const { processes, calls, killAfterSeconds, clockAheadMs = 0 } = each;
  const account = `account-of-${contender}`;
  const namespace = `bench:${randomUUID()}:`;
  const running = fleet.run((index) => ({
    ...{ contender, baseUrl, account, namespace, processes },
    limit: LIMIT,
    redisUrl: proxy.url,
    calls: calls / processes,
    clockAheadMs: index === 0 ? clockAheadMs : 0,
  }));
  const [outcomes] = await Promise.all([
    running,
    disturb(each, fleet, proxy),
    forget(redisUrl, namespace, each.forgetAfterSeconds),
  ]);
  const log = await readLog(baseUrl, account);
  const accepted = log.filter((entry) => entry.accepted).map((entry) => entry.at);
  const seconds = Math.max(...outcomes.map((outcome) => outcome.seconds));
  const done = outcomes.reduce((sum, { endedAt }) => sum + endedAt.length, 0);
  const commands = outcomes.reduce((sum, { redisCommands }) => sum + redisCommands, 0);
  return {
    contender,
    refused: log.length - accepted.length,
    seconds,
    sharePercent: (100 * accepted.length) / (LIMIT * seconds),
    lost: outcomes.reduce((sum, { failed }) => sum + failed, 0),
    commandsPerCall: commands / done,
    ...measureFairness(outcomes, Math.ceil((0.8 * calls) / processes)),
    longestGapSeconds: longestGapMs(accepted) / 1_000,
    fallbacks: outcomes.flatMap(({ fallbacks }) => fallbacks),
    ...(killAfterSeconds === undefined
      ? {}
      : { sharePercentAfterKill: sharePercentFrom(accepted, 1_000 * killAfterSeconds + USED_AFTER_KILL_MS) }),
  };
}

async function forget(redisUrl: string, namespace: string, afterSeconds: number | undefined): Promise<void> {
  if (afterSeconds === undefined) return;
  await sleep(1_000 * afterSeconds);
  const redis = new Redis(redisUrl);
  for await (const keys of redis.scanStream({ match: `${namespace}*`, count: 1_000 })) {
    if (keys.length > 0) await redis.del(...keys);
  }
  redis.disconnect();
}

async function disturb(
  { killAfterSeconds, outage }: FleetCase,
  fleet: PeerFleet,
  proxy: OutageProxy,
): Promise<void> {
  if (killAfterSeconds !== undefined) {
    await sleep(1_000 * killAfterSeconds);
    fleet.kill(0);
  }
  if (outage) {
    await sleep(1_000 * outage.afterSeconds);
    await proxy.takeAway(outage.kind);
    await sleep(1_000 * outage.seconds);
    await proxy.giveBack();
  }
}

function measureFairness(outcomes: readonly PeerOutcome[], firstServed: number) {
  const until = Math.min(
    ...outcomes.map(({ endedAt }) => endedAt[firstServed - 1] ?? Number.POSITIVE_INFINITY),
  );
  const counts = outcomes.map(({ endedAt }) => endedAt.filter((at) => at <= until).length);
  return { leastServed: Math.min(...counts), firstServed };
}

function longestGapMs(times: readonly number[]): number {
  return Math.max(0, ...times.slice(1).map((time, index) => time - (times[index] ?? time)));
}

/** The last two seconds are left out, in which the calls run out. */
function sharePercentFrom(times: readonly number[], afterMs: number): number {
  const from = (times[0] ?? 0) + afterMs;
  const to = (times.at(-1) ?? 0) - 2_000;
  const count = times.filter((time) => time >= from && time < to).length;
  return (100 * count) / ((LIMIT * (to - from)) / 1_000);
}

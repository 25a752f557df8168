import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { CountingMode } from '../counting.ts';
import { forkEnforcingServer, readLog, type startEnforcingServer } from '../enforcing-server.ts';
import { type OutageKind, OutageProxy } from './outage-proxy.ts';
import { PeerFleet, type PeerOutcome } from './peers.ts';

/** Describes a fleet, its service, and the disturbances in the middle of the run. */
export interface FleetCase {
  readonly mode: CountingMode;
  readonly processes: number;
  /** Number of calls of all processes together. */
  readonly calls: number;
  /** The first process is killed this many seconds after the start. Default: never. */
  readonly killAfterSeconds?: number;
  readonly outage?: { readonly kind: OutageKind; readonly afterSeconds: number; readonly seconds: number };
  /** Redis loses all keys of the fleet this many seconds after the start, as after FLUSHALL or a restart. */
  readonly forgetAfterSeconds?: number;
  /** The processes run these programs in turn. Default: `REDIS_LIMITER_PEER`. */
  readonly programs?: readonly string[];
}

export interface FleetRun {
  /** Number of responses with 429. */
  readonly refused: number;
  readonly seconds: number;
  /** Accepted requests per second, in percent of the limit. */
  readonly sharePercent: number;
  readonly lost: number;
  readonly commandsPerCall: number;
  /** Number of calls that the slowest process had made when the fastest had made four fifths of its calls. */
  readonly leastServed: number;
  /** Number of calls that the fastest process had made at that moment. */
  readonly firstServed: number;
  readonly fallbacks: PeerOutcome['fallbacks'];
}

const LIMIT = 10;
const JITTER_MS = 80;

/**
 * Lets processes share one limit of 10 requests per second, on a service that enforces it.
 *
 * @param startServer - starts the service. Default: in a process of its own
 */
export async function runFleetCase(
  fleetCase: FleetCase,
  redisUrl: string,
  startServer: typeof startEnforcingServer = forkEnforcingServer,
): Promise<FleetRun> {
  const { mode, processes, programs } = fleetCase;
  const server = await startServer({ mode, limit: LIMIT, jitterMs: JITTER_MS });
  const proxy = await OutageProxy.open(redisUrl);
  const fleet = await PeerFleet.start(processes, programs);
  try {
    const [baseUrl = ''] = server.baseUrls;
    return await runCalls(fleetCase, { baseUrl, fleet, proxy, redisUrl });
  } finally {
    await fleet.stop();
    await proxy.close();
    await server.close();
  }
}

interface Stage {
  readonly baseUrl: string;
  readonly fleet: PeerFleet;
  readonly proxy: OutageProxy;
  readonly redisUrl: string;
}

async function runCalls(fleetCase: FleetCase, stage: Stage): Promise<FleetRun> {
  const { baseUrl, fleet, proxy } = stage;
  const { processes, calls } = fleetCase;
  const account = 'account-of-the-fleet';
  const namespace = `fleet:${randomUUID()}:`;
  const [outcomes] = await Promise.all([
    fleet.run(() => ({
      ...{ baseUrl, account, namespace, processes },
      limit: LIMIT,
      redisUrl: proxy.url,
      calls: calls / processes,
    })),
    disturb(fleetCase, stage, namespace),
  ]);
  const log = await readLog(baseUrl, account);
  const accepted = log.filter((entry) => entry.accepted).length;
  const seconds = Math.max(...outcomes.map((outcome) => outcome.seconds));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const commands = sum(outcomes.map(({ redisCommands }) => redisCommands));
  return {
    refused: log.length - accepted,
    seconds,
    sharePercent: (100 * accepted) / (LIMIT * seconds),
    lost: sum(outcomes.map(({ failed }) => failed)),
    commandsPerCall: commands / sum(outcomes.map(({ endedAt }) => endedAt.length)),
    ...measureFairness(outcomes, Math.ceil((0.8 * calls) / processes)),
    fallbacks: outcomes.flatMap(({ fallbacks }) => fallbacks),
  };
}

/** Kills a process, takes Redis away and deletes the fleet's keys at the times that the case names. */
async function disturb(fleetCase: FleetCase, { fleet, proxy, redisUrl }: Stage, namespace: string) {
  const { killAfterSeconds, outage, forgetAfterSeconds } = fleetCase;
  const kill = async (afterSeconds: number) => {
    await sleep(1_000 * afterSeconds);
    fleet.kill(0);
  };
  const takeRedisAway = async ({ kind, afterSeconds, seconds }: NonNullable<FleetCase['outage']>) => {
    await sleep(1_000 * afterSeconds);
    await proxy.takeAway(kind);
    await sleep(1_000 * seconds);
    await proxy.giveBack();
  };
  const forget = async (afterSeconds: number) => {
    await sleep(1_000 * afterSeconds);
    await deleteKeys(redisUrl, namespace);
  };
  await Promise.all([
    killAfterSeconds === undefined ? undefined : kill(killAfterSeconds),
    outage && takeRedisAway(outage),
    forgetAfterSeconds === undefined ? undefined : forget(forgetAfterSeconds),
  ]);
}

/** Deletes every key that begins with a prefix. */
export async function deleteKeys(redisUrl: string, prefix: string): Promise<void> {
  const redis = new Redis(redisUrl);
  for await (const keys of redis.scanStream({ match: `${prefix}*`, count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(...keys);
  }
  redis.disconnect();
}

function measureFairness(outcomes: readonly PeerOutcome[], firstServed: number) {
  const until = Math.min(
    ...outcomes.map(({ endedAt }) => endedAt[firstServed - 1] ?? Number.POSITIVE_INFINITY),
  );
  const counts = outcomes.map(({ endedAt }) => endedAt.filter((at) => at <= until).length);
  return { leastServed: Math.min(...counts), firstServed };
}

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { CountingMode } from '../../test/support/counting.ts';
import { forkEnforcingServer, readLog, type startEnforcingServer } from '../limiter/enforcing-server.ts';
import { sum } from '../statistics.ts';
import { CONTENDERS, type Contender, PeerFleet, type PeerOutcome } from './peers.ts';
import { type OutageKind, OutageProxy } from './proxy.ts';

/** Describes a fleet, its service, and the disturbances in the middle of the run. */
export interface FleetCase {
  readonly name: string;
  readonly mode: CountingMode;
  readonly processes: number;
  /** Number of calls of all processes together. */
  readonly calls: number;
  /** A request is counted up to this many milliseconds after it arrived. Default: 80. */
  readonly jitterMs?: number;
  readonly contenders?: readonly Contender[];
  /** The first process is killed this many seconds after the start. */
  readonly killAfterSeconds?: number;
  readonly outage?: { readonly kind: OutageKind; readonly afterSeconds: number; readonly seconds: number };
  /** Redis loses all keys of the fleet this many seconds after the start, as after FLUSHALL or a restart. */
  readonly forgetAfterSeconds?: number;
  /** The first process's wall clock is this many milliseconds ahead. */
  readonly clockAheadMs?: number;
  /** The processes run these programs in turn. Default: `PEER`. */
  readonly programs?: readonly string[];
}

export interface FleetRun {
  readonly contender: Contender;
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
  /** Accepted requests per second from 2 s after the kill on, in percent of the limit. */
  readonly sharePercentAfterKill?: number;
  readonly fallbacks: PeerOutcome['fallbacks'];
}

export const LIMIT = 10;
const JITTER_MS = 80;
const USED_AFTER_KILL_MS = 2_000;

/**
 * Runs a case with one contender after the other, because a machine has too few processors for all contenders at once.
 *
 * @param startServer - starts the service. Default: in a process of its own
 */
export async function runFleetCase(
  fleetCase: FleetCase,
  redisUrl: string,
  startServer: typeof startEnforcingServer = forkEnforcingServer,
): Promise<FleetRun[]> {
  const { mode, processes, jitterMs = JITTER_MS } = fleetCase;
  const runs: FleetRun[] = [];
  for (const contender of fleetCase.contenders ?? CONTENDERS) {
    const server = await startServer({ mode, limit: LIMIT, jitterMs });
    const proxy = await OutageProxy.open(redisUrl);
    const fleet = await PeerFleet.start(processes, fleetCase.programs);
    try {
      const [baseUrl = ''] = server.baseUrls;
      runs.push(await runContender(fleetCase, { contender, baseUrl, fleet, proxy, redisUrl }));
    } finally {
      await fleet.stop();
      await proxy.close();
      await server.close();
    }
  }
  return runs;
}

interface Stage {
  readonly contender: Contender;
  readonly baseUrl: string;
  readonly fleet: PeerFleet;
  readonly proxy: OutageProxy;
  readonly redisUrl: string;
}

async function runContender(fleetCase: FleetCase, stage: Stage): Promise<FleetRun> {
  const { contender, baseUrl, fleet, proxy } = stage;
  const { processes, calls, killAfterSeconds, clockAheadMs = 0 } = fleetCase;
  const account = `account-of-${contender}`;
  const namespace = `bench:${randomUUID()}:`;
  const [outcomes] = await Promise.all([
    fleet.run((index) => ({
      ...{ contender, baseUrl, account, namespace, processes },
      limit: LIMIT,
      redisUrl: proxy.url,
      calls: calls / processes,
      clockAheadMs: index === 0 ? clockAheadMs : 0,
    })),
    disturb(fleetCase, stage, namespace),
  ]);
  const log = await readLog(baseUrl, account);
  const accepted = log.filter((entry) => entry.accepted).map((entry) => entry.at);
  const seconds = Math.max(...outcomes.map((outcome) => outcome.seconds));
  const commands = sum(outcomes.map(({ redisCommands }) => redisCommands));
  return {
    contender,
    refused: log.length - accepted.length,
    seconds,
    sharePercent: (100 * accepted.length) / (LIMIT * seconds),
    lost: sum(outcomes.map(({ failed }) => failed)),
    commandsPerCall: commands / sum(outcomes.map(({ endedAt }) => endedAt.length)),
    ...measureFairness(outcomes, Math.ceil((0.8 * calls) / processes)),
    fallbacks: outcomes.flatMap(({ fallbacks }) => fallbacks),
    ...(killAfterSeconds === undefined
      ? {}
      : { sharePercentAfterKill: measureShareFrom(accepted, 1_000 * killAfterSeconds + USED_AFTER_KILL_MS) }),
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

/** Measures the used share of the limit in percent. Leaves out the last two seconds, because few calls are left by then. */
function measureShareFrom(times: readonly number[], afterMs: number): number {
  const from = (times[0] ?? 0) + afterMs;
  const to = (times.at(-1) ?? 0) - 2_000;
  const count = times.filter((time) => time >= from && time < to).length;
  return (100 * count) / ((LIMIT * (to - from)) / 1_000);
}

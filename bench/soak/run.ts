import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Audit, audit, type Handling, readHandlings } from './audit.ts';
import { FAULTS, type Victims } from './faults.ts';
import { watchLimiter } from './limiter-watch.ts';
import { Member } from './members.ts';
import { type CallReport, type HeapUse, type InboxName, steadyNow } from './messages.ts';
import { type Outage, Pulse } from './pulse.ts';
import { SoakPostgres, SoakRedis } from './servers.ts';
import { LIMIT_PER_SECOND, SECRET, SoakService } from './service.ts';

export const RECEIVERS = 4;
const TIMER_MS = 10;
/** How often something happens to a shipment. */
const HAPPENS_EVERY_MS = 200;
/** Every so many times old events are told again. */
const TELLS_AGAIN_EVERY = 10;
/** From the beginning of a fault to that of the next one, unless it takes longer. */
const FAULT_EVERY_MS = 7_000;
/** What is left to an outage's end to be seen before the next one begins. */
const RECOVERY_MS = 3_000;
/** Longer than an attempt: what is read later than this was asked for after the last event. */
const LAST_ANSWERS_MS = 4_000;
/** How long the last webhooks and polls may take once nothing fails any more. */
const REST_MS = 120_000;

/** The heaps of the client that polls and of the receiver that is never killed, at one time. */
export interface HeapSample {
  readonly percentOfTime: number;
  readonly client: HeapUse;
  readonly receiver: HeapUse;
}

/** How a process ended. */
export interface Ending {
  readonly name: string;
  readonly timers: number;
  readonly sockets: number;
  readonly endedByItself: boolean;
}

/** What came of a soak. */
export interface SoakResult {
  readonly startedAt: number;
  /** How late the timers of the service were: how busy the machine was. */
  readonly latenessMs: { readonly median: number; readonly p99: number; readonly longest: number };
  readonly seconds: number;
  readonly events: number;
  readonly requests: number;
  readonly webhooks: SoakService['webhooks'];
  readonly refused: SoakService['refused'];
  readonly longestUplinkMs: number;
  readonly inboxes: Readonly<Record<InboxName, Audit>>;
  readonly polling: Audit;
  readonly calls: CallReport;
  readonly outages: readonly Outage[];
  readonly heap: readonly HeapSample[];
  readonly endings: readonly Ending[];
  /** What took too long to come to rest, and processes that ended though nobody asked them to. */
  readonly breakdowns: readonly string[];
  readonly pulse: Pulse;
}

/**
 * Runs everything for a while, lets it come to rest, and looks at what became of it.
 *
 * @param directory - takes the journals
 */
export async function runSoak(minutes: number, postgresUrl: string, directory: string): Promise<SoakResult> {
  const redis = await SoakRedis.start();
  const postgres = await SoakPostgres.open(postgresUrl);
  const receivers: Member[] = [];
  const service = await SoakService.open(() => receivers.filter(isAlive).map(({ url }) => url));
  const pulse = new Pulse();
  const everyone: Member[] = [];
  const task = {
    baseUrl: service.url,
    limitPerSecond: LIMIT_PER_SECOND,
    processes: RECEIVERS + 1,
    redisUrl: redis.url,
    postgresUrl: postgres.url,
    schema: postgres.schema,
    applicationName: postgres.applicationName,
    secret: SECRET,
    trackerIds: service.trackerIds,
  };
  const start = async (script: './poller.ts' | './receiver.ts', name: string) => {
    const member = await Member.start(script, { ...task, name }, directory, (counts) => pulse.add(counts));
    everyone.push(member);
    return member;
  };
  const startReceiver = async (place: number) => {
    receivers[place] = await start('./receiver.ts', `receiver-${everyone.length}-${place}`);
  };
  const victims: Victims = {
    ...{ service, redis, postgres },
    killReceiver: async () => {
      // The first one lives on: its heap is looked at.
      const place = 1 + Math.floor(Math.random() * (RECEIVERS - 1));
      await receivers[place]?.kill();
      await startReceiver(place);
    },
    shiftClocks: async (byMs) => {
      await Promise.all(everyone.map((member) => member.ask({ kind: 'shift', byMs }, 'shifted')));
    },
  };
  try {
    await Promise.all(Array.from({ length: RECEIVERS }, (_, place) => startReceiver(place)));
    const poller = await start('./poller.ts', 'poller');
    const startedAt = steadyNow();
    const watch = watchLimiter(redis.url, pulse, join(directory, 'limiter.log'));
    const lateness = monitorEventLoopDelay({ resolution: TIMER_MS });
    lateness.enable();
    const endsAt = startedAt + minutes * 60_000;
    const [outages, heap] = await Promise.all([
      letThingsFail(victims, endsAt),
      watchHeap(poller, receivers[0], startedAt, endsAt),
      letEventsHappen(service, endsAt),
    ]);
    const seconds = (steadyNow() - startedAt) / 1_000;
    lateness.disable();
    watch.stop();
    const breakdowns = await comeToRest(service, poller);
    const alive = everyone.filter(isAlive);
    const endings = await Promise.all(alive.map(async (member) => ({ member, end: await member.finish() })));
    const reports = endings.flatMap(({ end }) => end?.calls ?? []);
    return {
      startedAt,
      latenessMs: {
        median: lateMs(lateness.percentile(50)),
        p99: lateMs(lateness.percentile(99)),
        longest: lateMs(lateness.max),
      },
      seconds,
      events: service.happened.size,
      requests: service.requests,
      webhooks: service.webhooks,
      refused: service.refused,
      longestUplinkMs: service.longestUplinkMs,
      ...(await auditAll(service, postgres, everyone, outages)),
      calls: {
        rejected: Object.fromEntries(added(reports.map(({ rejected }) => rejected))),
        longestCallMs: Math.max(...reports.map(({ longestCallMs }) => longestCallMs)),
        givenUp: sum(reports.map(({ givenUp }) => givenUp)),
      },
      outages,
      heap,
      endings: endings.map(({ member: { name }, end }) => ({
        name,
        timers: end?.leftovers.timers ?? Number.NaN,
        sockets: end?.leftovers.sockets ?? Number.NaN,
        endedByItself: end?.endedByItself ?? false,
      })),
      breakdowns: [...breakdowns, ...everyone.flatMap(({ brokeDown }) => brokeDown ?? [])],
      pulse,
    };
  } finally {
    await Promise.all(everyone.filter(isAlive).map((member) => member.kill()));
    await service.close();
    await Promise.all([redis.remove(), postgres.remove()]);
  }
}

/** What became of every event at every inbox, and in the polls. */
async function auditAll(
  service: SoakService,
  postgres: SoakPostgres,
  everyone: readonly Member[],
  outages: readonly Outage[],
) {
  const withoutRedis = FAULTS.flatMap(({ name, isWithoutRedis }) => (isWithoutRedis ? name : []));
  const absences = outages.filter(({ name }) => withoutRedis.includes(name));
  const journals = everyone.map(({ journal, killedAt }) => ({ file: journal, killedAt }));
  const handled = readHandlings(journals, 'handled');
  const effects = new Map<string, Handling[]>();
  for (const { key, at } of await postgres.effects())
    effects.set(key, [...(effects.get(key) ?? []), { at, wasCut: false }]);
  const keyed = (prefix: string) =>
    new Map([...service.happened].map(([key, at]) => [`${prefix}tracking/events:${key}`, at]));
  return {
    inboxes: {
      redis: audit(keyed('redis '), handled, service.forgottenAt, absences),
      postgres: audit(keyed('postgres '), handled, [], []),
      transactional: audit(keyed(''), effects, [], []),
    },
    polling: audit(
      new Map([...service.onlyPolled, ...service.happened]),
      readHandlings(journals, 'polled'),
      [],
      [],
    ),
  };
}

async function letThingsFail(victims: Victims, endsAt: number): Promise<Outage[]> {
  const outages: Outage[] = [];
  await sleep(FAULT_EVERY_MS);
  for (let turn = 0; steadyNow() + FAULT_EVERY_MS < endsAt; turn += 1) {
    const fault = FAULTS[turn % FAULTS.length];
    if (fault === undefined) break;
    const from = steadyNow();
    await fault.happen(victims);
    const until = steadyNow();
    await sleep(Math.max(RECOVERY_MS, from + FAULT_EVERY_MS - until));
    const next = steadyNow();
    outages.push({ name: fault.name, from, until, next });
    console.error(`${fault.name}: ${((until - from) / 1_000).toFixed(1)} s`);
  }
  return outages;
}

/** Looks five times, at the end for the last time. */
async function watchHeap(poller: Member, receiver: Member | undefined, startedAt: number, endsAt: number) {
  const samples: HeapSample[] = [];
  for (let percentOfTime = 20; percentOfTime <= 100; percentOfTime += 20) {
    await sleep(Math.max(0, startedAt + ((endsAt - startedAt) * percentOfTime) / 100 - steadyNow()));
    const [ofPoller, ofReceiver] = await Promise.all(
      [poller, receiver].map((member) => member?.ask({ kind: 'heap' }, 'heap')),
    );
    // One that is gone is told of as a process that broke down.
    if (ofPoller && ofReceiver)
      samples.push({ percentOfTime, client: ofPoller.use, receiver: ofReceiver.use });
  }
  return samples;
}

async function letEventsHappen(service: SoakService, endsAt: number): Promise<void> {
  for (let turn = 1; steadyNow() < endsAt; turn += 1) {
    service.happen();
    if (turn % TELLS_AGAIN_EVERY === 0) await service.tellAgain();
    await sleep(HAPPENS_EVERY_MS);
  }
}

/** Waits until every webhook is accepted, and every tracker polled after the last event; gives what did not happen. */
async function comeToRest(service: SoakService, poller: Member): Promise<string[]> {
  const polled = sleep(LAST_ANSWERS_MS).then(() => poller.ask({ kind: 'drain' }, 'drained'));
  const [isSent, isPolled] = await Promise.all([inTime(service.stopSending()), inTime(polled)]);
  return [
    ...(isSent ? [] : ['webhooks were left that no receiver accepted']),
    ...(isPolled ? [] : ['trackers were left that were not polled again']),
  ];
}

async function inTime(work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  const late = sleep(REST_MS, false, { signal: over.signal }).catch(() => true);
  const isInTime = await Promise.race([work.then(() => true), late]);
  over.abort();
  return isInTime;
}

function isAlive({ killedAt, brokeDown }: Member): boolean {
  return killedAt === undefined && brokeDown === undefined;
}

function lateMs(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - TIMER_MS);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function added(counts: readonly Readonly<Record<string, number>>[]): Map<string, number> {
  const total = new Map<string, number>();
  for (const each of counts)
    for (const [name, times] of Object.entries(each)) total.set(name, (total.get(name) ?? 0) + times);
  return total;
}

import type { InboxKind } from '../../test/system/receivers/receiver-config.ts';
import { median, sum } from '../statistics.ts';
import { runOnPostgres, runOnRedis } from './storm.ts';

export interface StoreResult {
  readonly inbox: InboxKind;
  readonly eventsPerWebhook: number;
  /** Events per second, divided by those of the receiver by hand on the same database. */
  readonly ratio: number | null;
  /** Target of the ratio; null if there is none. */
  readonly must: number | null;
  readonly events: number;
  readonly seconds: number;
  readonly lost: number;
  /** Number of times that an event was handled again, or with `transaction`, written again. */
  readonly repeats: number;
}

/** The inboxes on each database; the receiver by hand comes first, because the others are compared with it. */
const INBOXES = {
  redis: ['redis by hand', 'redis', 'ioredis'],
  postgres: ['postgres by hand', 'postgres', 'transaction'],
} as const;

/** Targets of the ratio, by the number of events in a webhook. */
const MUST: Readonly<Record<number, Partial<Record<InboxKind, number>>>> = {
  8: { redis: 0.35, ioredis: 0.35, postgres: 0.45 },
  1: { redis: 0.5, ioredis: 0.5, postgres: 0.7 },
};

const EVENTS = 4_000;
const ROUNDS = 3;
/** V8 compiles the code of a receiver during its first thousands of webhooks. */
const WARM_UP_EVENTS = 8_000;

/** Sends each event three times, shuffled, to four receiver processes of each kind, in rounds in which all kinds take turns. */
export async function measureStores(
  redisUrl: string,
  postgresUrl: string,
  isQuick: boolean,
): Promise<StoreResult[]> {
  const results: StoreResult[] = [];
  const options = isQuick ? { events: 500 } : { events: EVENTS, warmUpEvents: WARM_UP_EVENTS };
  for (const eventsPerWebhook of [8, 1]) {
    for (const database of ['redis', 'postgres'] as const) {
      const [run, url] = database === 'redis' ? [runOnRedis, redisUrl] : [runOnPostgres, postgresUrl];
      const runs = new Map<InboxKind, Reports>(INBOXES[database].map((inbox) => [inbox, []]));
      for (let round = 1; round <= (isQuick ? 1 : ROUNDS); round += 1) {
        // Every second round is backwards, because the machine may become slower or faster meanwhile.
        for (const [inbox, reports] of round % 2 === 1 ? runs : [...runs].reverse()) {
          console.error(`${inbox}, ${eventsPerWebhook} per webhook, round ${round}`);
          reports.push(await run(url, { ...options, inbox, eventsPerWebhook }));
        }
      }
      const [byHand = []] = runs.values();
      for (const [inbox, reports] of runs) {
        const ratios = reports.map(({ seconds }, round) => (byHand[round]?.seconds ?? Number.NaN) / seconds);
        results.push({
          inbox,
          eventsPerWebhook,
          ratio: reports === byHand ? null : median(ratios),
          must: (isQuick ? undefined : MUST[eventsPerWebhook]?.[inbox]) ?? null,
          events: options.events,
          seconds: median(reports.map(({ seconds }) => seconds)),
          lost: sum(reports.map(({ lost }) => lost)),
          repeats: sum(reports.map(({ repeats }) => repeats)),
        });
      }
    }
  }
  return results;
}

type Reports = Awaited<ReturnType<typeof runOnRedis>>[];

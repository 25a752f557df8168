/** `cpu.ts` forks this program for each case, without `tsx`. */
import { createCall } from './by-hand.ts';
import { BY_HAND, OURS } from './figures.ts';

export interface CpuTask {
  /** The built package. */
  readonly packageUrl: string;
  readonly baseUrl: string;
  readonly rounds: number;
}

/** Microseconds of each contender for one call, for each round. */
export type CpuSamples = readonly (readonly (readonly [contender: string, microseconds: number])[])[];

const CALLS = 100;
/** V8 still compiles and optimizes during these rounds. */
const WARM_UP_ROUNDS = 30;
const TIMEOUT_MS = 30_000;
const API_KEY = 'key-of-the-bench';

type Call = () => Promise<unknown>;

async function openContenders({ packageUrl, baseUrl }: CpuTask): Promise<[string, Call][]> {
  // The build is made from these sources, so it has their types.
  const { TrackingClient } = (await import(packageUrl)) as typeof import('../../src/index.ts');
  const url = `${baseUrl}/trackers/abc/results`;
  const headers = { authorization: `Bearer ${API_KEY}`, accept: 'application/json' };
  const rateLimit = { limits: { 'trackers.results': 1_000_000 } };
  const client = new TrackingClient({ baseUrl, apiKey: API_KEY, rateLimit });
  return [
    ['bare fetch', async () => JSON.parse(await (await fetch(url, { headers })).text())],
    [
      "the official SDK's way",
      async () => {
        const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
        if (!response.ok) throw new Error(`Status ${response.status}`);
        return await response.json();
      },
    ],
    [BY_HAND, createCall(baseUrl)],
    [OURS, async () => client.trackers.results('abc')],
  ];
}

async function measureMicrosecondsPerCall(call: Call): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 0; index < CALLS; index += 1) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

function shuffle<Item>(items: readonly Item[]): Item[] {
  const keyed = items.map((item) => ({ item, key: Math.random() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

// `cpu.ts` passes the task as the first argument.
const task = JSON.parse(process.argv[2] ?? '') as CpuTask;
const contenders = await openContenders(task);
const samples: (readonly [string, number])[][] = [];
for (let round = -WARM_UP_ROUNDS; round < task.rounds; round += 1) {
  const sample: (readonly [string, number])[] = [];
  // A contender may pay for the garbage of its predecessor, so each round has a random order.
  for (const [contender, call] of shuffle(contenders))
    sample.push([contender, await measureMicrosecondsPerCall(call)]);
  if (round >= 0) samples.push(sample);
}
process.send?.(samples satisfies CpuSamples);
process.disconnect();

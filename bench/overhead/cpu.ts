import { main } from '../built.ts';
import { findMedian } from '../statistics.ts';
import { createCall } from './by-hand.ts';
import { BY_HAND, type CpuCase, OURS } from './figures.ts';

const CALLS = 300;
const WARM_UP_ROUNDS = 3;
const TIMEOUT_MS = 30_000;

type Call = () => Promise<unknown>;

function openContenders(baseUrl: string): Readonly<Record<string, Call>> {
  const url = `${baseUrl}/trackers/abc/results`;
  const headers = { authorization: 'Bearer bench', accept: 'application/json' };
  const rateLimit = { limits: { 'trackers.results': 1_000_000 } };
  const client = new main.TrackingClient({ baseUrl, apiKey: 'bench', rateLimit });
  return {
    'bare fetch': async () => JSON.parse(await (await fetch(url, { headers })).text()),
    "the official SDK's way": async () => {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!response.ok) throw new Error(`Status ${response.status}`);
      return await response.json();
    },
    [BY_HAND]: createCall(baseUrl),
    [OURS]: async () => client.trackers.results('abc'),
  };
}

async function measureMicrosecondsPerCall(call: Call): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 0; index < CALLS; index += 1) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

/** Measures the CPU time of one `results` call in rounds, in which all contenders take turns. */
export async function measureCpu(origin: string, events: number, rounds: number): Promise<CpuCase> {
  const calls = Object.entries(openContenders(`${origin}/${events}`));
  const samples: Map<string, number>[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + rounds; round += 1) {
    const sample = new Map<string, number>();
    // The order rotates, because each contender may pay for the garbage of its predecessor.
    const first = round % calls.length;
    for (const [contender, call] of [...calls.slice(first), ...calls.slice(0, first)])
      sample.set(contender, await measureMicrosecondsPerCall(call));
    if (round >= WARM_UP_ROUNDS) samples.push(sample);
  }
  const costs = calls.map(([contender]) => ({
    contender,
    microsecondsPerCall: findMedian(samples, contender),
    ratio: findMedian(samples, contender, BY_HAND),
  }));
  return { events, costs };
}

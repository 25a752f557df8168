import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import ky from 'ky';
import { median } from '../statistics.ts';

// The build is measured, as users meet it; a computed specifier keeps the type check from asking for a build first.
const built = new URL('../../dist/index.js', import.meta.url).href;
// The build is made from this very source.
const { TrackingClient } = (await import(built)) as typeof import('../../src/index.ts');

/** What the others are measured against. */
export const BASELINE = 'bare fetch';
/** What is measured. */
export const SUBJECT = 'tracking-client';

const ROUNDS = 25;
const CALLS = 300;
/** Rounds that warm all contenders up. */
const WARM_UP_ROUNDS = 3;
const TIMEOUT_MS = 30_000;

/** What one call costs a contender, and against bare fetch in the same round. */
export interface CpuCost {
  readonly contender: string;
  readonly microsecondsPerCall: number;
  readonly ratio: number;
}

/** All contenders at one number of events. */
export interface CpuCase {
  readonly events: number;
  readonly costs: readonly CpuCost[];
}

type Call = () => Promise<unknown>;

function contenders(baseUrl: string): Record<string, Call> {
  const url = `${baseUrl}/trackers/abc/results`;
  const headers = { authorization: 'Bearer bench', accept: 'application/json' };
  // The service announces a high limit as well, so nobody ever waits for a token.
  const rateLimit = { limits: { 'trackers.results': 1_000_000 } };
  const client = new TrackingClient({ baseUrl, apiKey: 'bench', rateLimit });
  return {
    [BASELINE]: async () => JSON.parse(await (await fetch(url, { headers })).text()),
    'fetch with a timeout': async () => {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      return JSON.parse(await (await fetch(url, { headers, signal })).text());
    },
    ky: async () => JSON.parse(await (await ky(url, { headers, retry: 0, timeout: TIMEOUT_MS })).text()),
    [SUBJECT]: async () => client.trackers.results('abc'),
  };
}

async function cpuMicrosecondsPerCall(call: Call): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 0; index < CALLS; index += 1) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

async function measureCase(events: number, port: number): Promise<CpuCase> {
  const calls = Object.entries(contenders(`http://127.0.0.1:${port}/${events}`));
  const rounds: Map<string, number>[] = [];
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    const costs = new Map<string, number>();
    // Turned by one each round, so that nobody always pays for the garbage of the same one.
    const turn = (round + WARM_UP_ROUNDS) % calls.length;
    for (const [contender, call] of [...calls.slice(turn), ...calls.slice(0, turn)])
      costs.set(contender, await cpuMicrosecondsPerCall(call));
    if (round >= 0) rounds.push(costs);
  }
  const costs = calls.map(([contender]) => {
    const own = rounds.map((round) => round.get(contender) ?? Number.NaN);
    const bare = rounds.map((round) => round.get(BASELINE) ?? Number.NaN);
    const ratios = own.map((cost, index) => cost / (bare[index] ?? Number.NaN));
    return { contender, microsecondsPerCall: median(own), ratio: median(ratios) };
  });
  return { events, costs };
}

/** CPU time of one `results` call per contender, in rounds that take turns; the service runs in another process. */
export async function measureCpu(): Promise<CpuCase[]> {
  const server = fork(fileURLToPath(new URL('./server.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
  });
  const port = await new Promise<number>((resolve) =>
    server.once('message', (address: { port: number }) => resolve(address.port)),
  );
  try {
    return [await measureCase(10, port), await measureCase(200, port)];
  } finally {
    server.disconnect();
  }
}

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import ky, { HTTPError } from 'ky';
import pRetry from 'p-retry';
import { z } from 'zod';
import { median } from '../statistics.ts';

// The build is measured, as users meet it; a computed specifier keeps the type check from asking for a build first.
const built = new URL('../../dist/index.js', import.meta.url).href;
// The build is made from this very source.
const { TrackingClient } = (await import(built)) as typeof import('../../src/index.ts');

/** What a call costs at least; nobody gets below it. */
export const FLOOR = 'bare fetch';
/** What a program would else use: the ratio that counts is against it. */
export const BY_HAND = 'ky + zod + p-retry by hand';
/** What is measured. */
export const SUBJECT = 'tracking-client';

const ROUNDS = 25;
const CALLS = 300;
/** Rounds that warm all contenders up. */
const WARM_UP_ROUNDS = 3;
const TIMEOUT_MS = 30_000;

/** What one call costs a contender, and against the one by hand in the same round. */
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

/** The call as an app would write it: its headers, one schema of the fields it reads, one retry policy. */
function byHand(baseUrl: string): Call {
  const event = z.object({
    eventId: z.string(),
    trackingNumber: z.string(),
    eventTrackingNumber: z.string().nullish(),
    status: z.string(),
    occurrenceDatetime: z.string(),
    order: z.number().nullish(),
    location: z.string().nullish(),
    sourceCode: z.string().nullish(),
    courierCode: z.string().nullish(),
    statusCode: z.string().nullish(),
    statusCategory: z.string().nullish(),
    statusMilestone: z.string(),
  });
  const tracker = z.object({ trackerId: z.string(), trackingNumber: z.string(), isTracked: z.boolean() });
  const shipment = z.object({ shipmentId: z.string(), statusMilestone: z.string() });
  const tracking = z.object({ tracker, shipment, events: z.array(event) });
  const results = z.object({ data: z.object({ trackings: z.array(tracking) }) });
  const api = ky.create({
    prefixUrl: baseUrl,
    headers: { authorization: 'Bearer bench', accept: 'application/json' },
    timeout: TIMEOUT_MS,
    retry: 0,
  });
  return () =>
    pRetry(async () => results.parse(await api.get('trackers/abc/results').json()).data.trackings[0], {
      retries: 3,
      shouldRetry: ({ error }) => !(error instanceof HTTPError) || error.response.status >= 500,
    });
}

function contenders(baseUrl: string): Record<string, Call> {
  const url = `${baseUrl}/trackers/abc/results`;
  const headers = { authorization: 'Bearer bench', accept: 'application/json' };
  // The service announces a high limit as well, so nobody ever waits for a token.
  const rateLimit = { limits: { 'trackers.results': 1_000_000 } };
  const client = new TrackingClient({ baseUrl, apiKey: 'bench', rateLimit });
  return {
    [FLOOR]: async () => JSON.parse(await (await fetch(url, { headers })).text()),
    "the official SDK's way": async () => {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (!response.ok) throw new Error(`Status ${response.status}`);
      return await response.json();
    },
    [BY_HAND]: byHand(baseUrl),
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
    const hand = rounds.map((round) => round.get(BY_HAND) ?? Number.NaN);
    const ratios = own.map((cost, index) => cost / (hand[index] ?? Number.NaN));
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

// CPU time of one `results` call against bare fetch + JSON.parse of the same answer, in one run, rounds interleaved,
// the server in another process.
import { fork } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

// The build is measured, as users meet it; a computed specifier keeps the type check from asking for a build first.
const built = new URL('../dist/index.js', import.meta.url).href;
// The build is made from this very source.
const { TrackingClient } = (await import(built)) as typeof import('../src/index.ts');

const ROUNDS = 9;
const CALLS = 400;

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

async function cpuMicrosecondsPerCall(call: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let index = 0; index < CALLS; index += 1) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

const server = fork(fileURLToPath(new URL('./overhead/server.ts', import.meta.url)), {
  execArgv: ['--import', 'tsx'],
});
const port = await new Promise<number>((resolve) =>
  server.once('message', (address: { port: number }) => resolve(address.port)),
);
const rows = [];
for (const events of [10, 200]) {
  const baseUrl = `http://127.0.0.1:${port}/${events}`;
  const headers = { authorization: 'Bearer bench', accept: 'application/json' };
  const bare = async () =>
    JSON.parse(await (await fetch(`${baseUrl}/trackers/abc/results`, { headers })).text());
  const limits = { 'trackers.results': 1_000_000 };
  const client = new TrackingClient({ baseUrl, apiKey: 'bench', rateLimit: { limits } });
  const ours = async () => client.trackers.results('abc');
  const samples = { bare: [] as number[], ours: [] as number[] };
  for (let round = -1; round < ROUNDS; round += 1) {
    const bareCost = await cpuMicrosecondsPerCall(bare);
    const ourCost = await cpuMicrosecondsPerCall(ours);
    if (round < 0) continue; // The first round warms both up.
    samples.bare.push(bareCost);
    samples.ours.push(ourCost);
  }
  const ratios = samples.bare.map((cost, index) => (samples.ours[index] ?? Number.NaN) / cost);
  rows.push({
    events,
    bareMicroseconds: median(samples.bare),
    clientMicroseconds: median(samples.ours),
    ratio: median(ratios),
  });
}
server.disconnect();
console.table(
  rows.map((row) => ({
    events: row.events,
    'bare fetch (µs)': row.bareMicroseconds.toFixed(0),
    'client (µs)': row.clientMicroseconds.toFixed(0),
    ratio: row.ratio.toFixed(2),
  })),
);
await mkdir(new URL('./results/', import.meta.url), { recursive: true });
const report = { node: process.version, cpu: cpus()[0]?.model, rounds: ROUNDS, callsPerRound: CALLS, rows };
await writeFile(new URL('./results/overhead.json', import.meta.url), `${JSON.stringify(report, null, 2)}\n`);

/**
 * Measures the processor time and the memory of `couriers.checkMany` with 100,000 creation requests and a list of 1,500 couriers. The
 * targets are 2 s, one request, and a heap that does not grow. `npm run prepare && npx tsx bench/check-couriers.ts` only prints.
 */
import { markdownTable } from '../scripts/support/markdown-table.ts';
import { main } from './built.ts';
import { usedHeapBytes } from './heap.ts';

const INPUTS = 100_000;
const COURIERS = 1_500;
const ROUNDS = 3;
const MAX_MS = 2_000;
/** Half of the smallest object for each input, so that a program that keeps anything of each input misses it. */
const MAX_GROWTH_BYTES = 8 * INPUTS;

/** Every third courier needs a field, and every tenth is deprecated. */
const couriers = Array.from({ length: COURIERS }, (_, index) => ({
  courierCode: `courier-${index}`,
  courierName: `Courier ${index}`,
  website: null,
  isPost: false,
  countryCode: 'US',
  requiredFields: index % 3 === 0 ? ['destinationPostCode', 'destinationCountryCode'] : null,
  isDeprecated: index % 10 === 0,
}));
const list = JSON.stringify({ data: { couriers } });

/** Every seventh request names an unknown courier, so the checks report each kind of problem that depends on the request. */
function* generateInputs() {
  for (let index = 0; index < INPUTS; index += 1)
    yield {
      trackingNumber: `RR${100_000_000 + index}CN`,
      courierCode: index % 7 === 0 ? `unknown-${index}` : `courier-${index % COURIERS}`,
      ...(index % 2 === 0 && { destinationPostCode: '10115', destinationCountryCode: 'DE' }),
    };
}

async function measure(): Promise<string[]> {
  let requests = 0;
  const client = new main.TrackingClient({
    baseUrl: 'https://service.test',
    apiKey: 'key',
    fetch: async () => {
      requests += 1;
      return new Response(list, { headers: { 'content-type': 'application/json' } });
    },
  });
  let problems = 0;
  let ms = 0;
  const heaps: number[] = [];
  let before = process.cpuUsage();
  for await (const check of client.couriers.checkMany(generateInputs())) {
    problems += check.problems.length;
    if ((check.index + 1) % (INPUTS / 10) !== 0) continue;
    // The collection of garbage belongs to this program, and not to the checks.
    const { user, system } = process.cpuUsage(before);
    ms += (user + system) / 1_000;
    heaps.push(await usedHeapBytes());
    before = process.cpuUsage();
  }
  const [first = 0] = heaps;
  const growth = Math.max(...heaps) - first;
  const isKept = ms <= MAX_MS && growth <= MAX_GROWTH_BYTES && requests === 1;
  const growthText = `${(growth / 1_024).toFixed(0)} KiB`;
  return [`${ms.toFixed(0)} ms`, growthText, `${requests}`, `${problems}`, isKept ? 'kept' : 'MISSED'];
}

const rows: string[][] = [];
for (let round = 1; round <= ROUNDS; round += 1) rows.push([`${round}`, ...(await measure())]);
console.log(
  markdownTable(
    ['Round', 'CPU time', 'Most heap after the first tenth', 'Requests', 'Problems', 'Target'],
    rows,
  ),
);

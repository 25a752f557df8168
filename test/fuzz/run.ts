// Feeds broken and hostile input to the package until the time is over: `npm run test:fuzz -- --minutes 10`. Every batch of
// inputs is decided by one seed; `--seed N --property NAME` runs that batch again.
import { parseArgs } from 'node:util';
import { usedHeapBytes } from '../../bench/heap.ts';
import { functions } from './functions.ts';
import { ProcessGuard } from './process-guard.ts';
import type { Property } from './property.ts';
import { responses } from './responses.ts';
import { webhooks } from './webhooks.ts';

const ALL: readonly Property[] = [responses, webhooks, functions];

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, property: { type: 'string' } },
});
const chosen = ALL.filter(({ name }) => values.property === undefined || values.property === name);
const minutes = Number(values.minutes ?? (values.seed === undefined ? 1 : 0));
const firstSeed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 30) : Number(values.seed);
if (chosen.length === 0 || !(minutes >= 0) || !Number.isSafeInteger(firstSeed)) {
  const names = ALL.map(({ name }) => name).join(', ');
  console.error(
    `Usage: npm run test:fuzz -- [--minutes N] [--seed N] [--property NAME]\nProperties: ${names}`,
  );
  process.exit(2);
}

/** The first batches compile code and fill caches, which is no leak. */
const WARM_UP_BATCHES = 3;
const MAX_GROWTH_BYTES = 8 * 2 ** 20;

const guard = new ProcessGuard();
const tallies = chosen.map((property) => ({
  ...{ property, runs: 0, batches: 0, ms: 0, verdict: 'ok' },
  /** Heap in use after the warm-up, and its growth since then, which any property may have caused. */
  ...{ warmBytes: 0, grownBytes: 0 },
}));
type Tally = (typeof tallies)[number];
const endsAt = performance.now() + minutes * 60_000;

function fail(tally: Tally, seed: number, why: string): void {
  tally.verdict = `FAILED with seed ${seed}`;
  console.error(`\nFAILED ${tally.property.name}: ${why}`);
  console.error(`Again: npm run test:fuzz -- --property ${tally.property.name} --seed ${seed}\n`);
}

async function runBatch(tally: Tally, seed: number): Promise<void> {
  guard.noteResources();
  const startedAt = performance.now();
  try {
    const { runs, failure } = await tally.property.batch(seed, guard);
    tally.runs += runs;
    if (failure !== undefined) fail(tally, seed, failure);
    await guard.checkResources();
    await guard.check();
  } catch (error) {
    fail(tally, seed, error instanceof Error ? error.message : String(error));
  }
  tally.ms += performance.now() - startedAt;
  tally.batches += 1;
  const usedBytes = await usedHeapBytes();
  if (tally.batches <= WARM_UP_BATCHES) tally.warmBytes = usedBytes;
  tally.grownBytes = usedBytes - tally.warmBytes;
  if (tally.grownBytes > MAX_GROWTH_BYTES) fail(tally, seed, `grew by ${formatMegabytes(tally.grownBytes)}`);
}

function formatMegabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

console.log(`seed ${firstSeed}, ${minutes} minutes`);
let seed = firstSeed;
do {
  // A property that failed is not tried again; the others go on.
  for (const tally of tallies) {
    if (tally.verdict === 'ok' && (performance.now() < endsAt || seed === firstSeed))
      await runBatch(tally, seed);
  }
  seed += 1;
} while (performance.now() < endsAt && tallies.some(({ verdict }) => verdict === 'ok'));

console.log();
for (const { property, runs, batches, ms, grownBytes, verdict } of tallies) {
  const seeds = `${firstSeed}…${firstSeed + batches - 1}`;
  console.log(`${property.name}: ${verdict}`);
  console.log(
    `  ${runs} runs, ${batches} batches, seeds ${seeds}, ${Math.round(ms / 1000)} s, grew by ${formatMegabytes(grownBytes)}`,
  );
}
process.exitCode = tallies.every(({ verdict }) => verdict === 'ok') ? 0 : 1;

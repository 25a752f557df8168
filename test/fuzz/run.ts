// Feeds random schedules and hostile input to the package until the time is over: `npm run test:fuzz -- --minutes 10`. Every batch
// of inputs is decided by one seed; `--seed N --property NAME` runs that batch again. `npm test` runs one batch of each property.
import { inspect, parseArgs } from 'node:util';
import { bodyForms } from './body-forms.ts';
import { bulkSchedules } from './bulk-schedules.ts';
import { functions } from './functions.ts';
import { limiterSchedules } from './limiter-schedules.ts';
import { pollingSchedules } from './polling-schedules.ts';
import { redisLimiterSchedules } from './redis-limiter-schedules.ts';
import { responses } from './responses.ts';
import { webhookSchedules } from './webhook-schedules.ts';
import { webhooks } from './webhooks.ts';

const ALL = [
  ...[responses, webhooks, bodyForms, functions],
  ...[webhookSchedules, bulkSchedules, pollingSchedules, limiterSchedules, redisLimiterSchedules],
];
const MAX_REPORT_LENGTH = 4_000;

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, property: { type: 'string' } },
});
const going = new Set(ALL.filter(({ name }) => values.property === undefined || values.property === name));
const minutes = Number(values.minutes ?? (values.seed === undefined ? 1 : 0));
const firstSeed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 30) : Number(values.seed);
if (going.size === 0 || !(minutes >= 0) || !Number.isSafeInteger(firstSeed)) {
  const names = ALL.map(({ name }) => name).join(', ');
  console.error(
    `Usage: npm run test:fuzz -- [--minutes N] [--seed N] [--property NAME]\nProperties: ${names}`,
  );
  process.exit(2);
}

const endsAt = performance.now() + minutes * 60_000;
const tookMs = new Map<unknown, number>();
let isOver = false;
let seed = firstSeed;
do {
  for (const property of going) {
    const startedAt = performance.now();
    // The first round tries everything. A later batch begins only if there is time for one like the last.
    isOver ||= seed > firstSeed && startedAt + (tookMs.get(property) ?? 0) > endsAt;
    if (isOver) break;
    await property.runBatch(seed).catch((error: unknown) => {
      // A property that failed is not tried again; the others go on.
      going.delete(property);
      process.exitCode = 1;
      console.error(`FAILED ${property.name}: ${inspect(error).slice(0, MAX_REPORT_LENGTH)}\n`);
    });
    tookMs.set(property, performance.now() - startedAt);
  }
  seed += 1;
} while (!isOver && performance.now() < endsAt && going.size > 0);
const names = [...going].map(({ name }) => name).join(', ') || 'none';
console.log(`Seeds ${firstSeed} to ${seed - 1}; properties that hold: ${names}`);

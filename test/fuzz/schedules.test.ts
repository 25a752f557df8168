// Runs one batch of each property with a fixed seed. A failure prints its smallest schedule, and the command that tries it again.
import { test } from 'vitest';
import { bodyForms } from './body-forms.ts';
import { bulkSchedules } from './bulk-schedules.ts';
import { TEST_SEED } from './harness.ts';
import { limiterSchedules } from './limiter-schedules.ts';
import { pollingSchedules } from './polling-schedules.ts';
import { redisLimiterSchedules } from './redis-limiter-schedules.ts';
import { webhookSchedules } from './webhook-schedules.ts';

test.each([
  ['any arrivals, delays, aborts, 429s and announced limits → no own 429, calls in turn', limiterSchedules],
  ['any slow, lost and repeated commands, and outages of Redis → no own 429', redisLimiterSchedules],
  ['any trackers, failures and ends of `pollMany` → each event once, within the limits', pollingSchedules],
  ['any answers, losses and ends of `createMany` → one true outcome for each input, in order', bulkSchedules],
  [
    'any faults of the store, failing callbacks and lost receivers → each event handled once',
    webhookSchedules,
  ],
  ['a webhook body of any form, whoever has read it → the same response and calls', bodyForms],
])('%s', async (_title, property) => {
  await property.runBatch(TEST_SEED);
});

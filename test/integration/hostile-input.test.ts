// Runs one batch of each property with a fixed seed. A failure prints its smallest input, and the command that tries it again.
import { test } from 'vitest';
import { functions } from '../fuzz/functions.ts';
import { TEST_SEED } from '../fuzz/harness.ts';
import { responses } from '../fuzz/responses.ts';
import { webhooks } from '../fuzz/webhooks.ts';

test.each([
  ['any bytes as a response → a result or a typed error that hides the key, in time', responses],
  ['any bytes as a webhook → a 2xx only if every event was handled once', webhooks],
  ['any options and arguments → a result or a typed error that hides the key', functions],
  // The properties have time limits, which a busy machine can pass.
])('%s', { retry: 1 }, async (_title, property) => {
  await property.runBatch(TEST_SEED);
});

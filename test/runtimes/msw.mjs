// The handlers for MSW, imported and required. A program of its own, for MSW leaves a channel open that Deno waits for.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { getResponse } from 'msw';
import { createFakeTrackingService } from 'tracking-client/testing';
import { trackingHandlers } from 'tracking-client/testing/msw';
import { runChecks } from './checks/run-checks.cjs';

const required = createRequire(import.meta.url)('tracking-client/testing/msw');
const baseUrl = 'https://tracking.test/public/v1';

async function checkAnswer(makeHandlers) {
  const fake = createFakeTrackingService();
  const headers = { authorization: `Bearer ${fake.apiKey}` };
  const response = await getResponse(
    makeHandlers(fake, { baseUrl }),
    new Request(`${baseUrl}/couriers`, { headers }),
  );
  assert.equal(response.status, 200);
  assert.ok((await response.json()).data.couriers.length > 0);
}

await runChecks({
  'imported handlers → answer with the fake': () => checkAnswer(trackingHandlers),
  'required handlers → answer with the fake': () => checkAnswer(required.trackingHandlers),
});
process.exit();

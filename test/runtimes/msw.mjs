// The handlers for MSW, imported and required. This is a program of its own, because MSW leaves a channel open and Deno waits for it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { getResponse } from 'msw';
import { createFakeTrackingService } from 'tracking-client/testing';
import { trackingHandlers } from 'tracking-client/testing/msw';
import { runChecks } from './checks/run-checks.cjs';

const required = createRequire(import.meta.url)('tracking-client/testing/msw');
const baseUrl = 'https://tracking.test/public/v1';

async function checkResponse(makeHandlers) {
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
  'imported handlers → respond with the fake': () => checkResponse(trackingHandlers),
  'required handlers → respond with the fake': () => checkResponse(required.trackingHandlers),
});
process.exit();

// One run of everything a runtime must carry, over real HTTP: all endpoints, the limiter, imports and polls, webhooks,
// failures, and the other entry points. Plain JavaScript against the installed package, so every runtime runs the same.
import { TrackingClient } from 'tracking-client';
import { createFakeTrackingService } from 'tracking-client/testing';
import { clientChecks } from './checks/client.mjs';
import { runChecks } from './checks/run-checks.cjs';
import { webhookChecks } from './checks/webhooks.mjs';

/** A service of its own for each check, with its limits enforced over any second, not only over whole ones. */
async function makeStage() {
  const fake = createFakeTrackingService({
    resultsDelayMs: 0,
    limitWindow: 'sliding',
    plans: { perShipment: true, perCall: true },
  });
  const server = await fake.listen();
  const client = new TrackingClient({ baseUrl: server.url, apiKey: fake.apiKey });
  return { fake, server, client };
}

await runChecks({ ...clientChecks, ...webhookChecks }, async (check) => {
  const stage = await makeStage();
  try {
    await check(stage);
  } finally {
    await stage.server.close();
  }
});

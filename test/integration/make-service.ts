import { onTestFinished } from 'vitest';
import { TrackingClient } from '../../src/client.ts';
import { createFakeTrackingService, type FakeTrackingServiceOptions } from '../../src/testing/index.ts';

/** Starts a fake service that enforces its limits, and creates a client for it, with real HTTP between them. */
export async function makeService(options: FakeTrackingServiceOptions = {}) {
  const fake = createFakeTrackingService(options);
  const server = await fake.listen();
  onTestFinished(() => server.close());
  const { url: baseUrl } = server;
  const client = new TrackingClient({ baseUrl, apiKey: fake.apiKey, logLevel: 'silent' });
  return { fake, client };
}
